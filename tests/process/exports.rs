//! `medfeed export`: the permissions of exported files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::site::Site;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn exports_are_as_private_as_the_database() {
    let site = Site::with(3);
    assert_eq!(mode(&site.db()), 0o600, "a new database");
    let cases = [
        (0o600, 0o700),
        (0o640, 0o750),
        (0o644, 0o755),
        (0o664, 0o775),
        (0o400, 0o700),
    ];
    for (database, folder) in cases {
        fs::set_permissions(site.db(), Permissions::from_mode(database)).unwrap();
        for format in ["jsonl", "csv"] {
            let name = format!("out-{database:o}-{format}");
            // Under a parent folder that is missing too, and again over the existing files.
            for _ in 0..2 {
                site.json([
                    "export",
                    &format!("{name}/new/../inner"),
                    "--format",
                    format,
                ]);
                for part in [name.clone(), format!("{name}/inner")] {
                    assert_eq!(mode(&site.path(&part)), folder, "{part}");
                }
                for stem in ["conferences", "journals", "organizations", "tags"] {
                    let file = site.path(&format!("{name}/inner/{stem}.{format}"));
                    assert_eq!(mode(&file), database, "{}", file.display());
                    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
                }
            }
        }
        for book in [
            format!("book-{database:o}/all.xlsx"),
            format!("{database:o}.xlsx"),
        ] {
            site.write(&book, "");
            site.json(["export", &book]);
            assert_eq!(mode(&site.path(&book)), database, "{book}");
        }
    }
    // An existing folder keeps its mode.
    fs::create_dir(site.path("shared")).unwrap();
    fs::set_permissions(site.path("shared"), Permissions::from_mode(0o777)).unwrap();
    site.json(["export", "shared"]);
    assert_eq!(mode(&site.path("shared")), 0o777);
    assert_eq!(mode(&site.path("shared/tags.jsonl")), 0o400);
}
