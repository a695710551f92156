//! A few bad rows do not hold up the others: `import --allow-faults` and `--faults`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::site::Site;

const RECIPE: &str = "dataset = \"journals\"\nmatch = [[\"issn\"], [\"name\"]]\ndecimal = \"comma\"\nheader_rows = 2\nignore = true\n\
                      [columns]\n\"Title\" = \"name\"\n\"ISSN\" = \"issn_print\"\n\"Metric SJR\" = \"sjr\"\n";

const LIST: &str = "List 2026;;;\nTitle;ISSN;Metric;Rest\n;;SJR;\nHeart A;0028-4793;1,5;x\nHeart B;1474-547X;many;\"a;b\"\n\
                    Heart C;0140-6736;2,5;\n;1050-124X;3;\n";

#[test]
fn bad_rows_are_written_as_they_are_and_imported_once_they_are_corrected() {
    let site = Site::new();
    site.write("list.toml", RECIPE);
    site.write("list.csv", LIST);
    let import = ["import", "list.csv", "--recipe", "list.toml", "--create"];
    let with = |more: &[&str]| site.run(import.iter().chain(more));
    let refused = with(&["--allow-faults", "1", "--faults", "refused.csv"]);
    refused.assert_told(1, "--allow-faults 2");
    let done = with(&["--allow-faults", "2", "--faults", "bad.csv", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = done.json();
    assert_eq!(told["committed"], true, "{told}");
    assert_eq!(told["bad_rows"], 2, "{told}");
    assert_eq!(told["errors"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["datasets"]["journals"]["added"], 2, "{told}");
    let bad = fs::read_to_string(site.path("bad.csv")).unwrap();
    assert_eq!(bad, fs::read_to_string(site.path("refused.csv")).unwrap());
    let mode = fs::metadata(site.path("bad.csv"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let lines: Vec<&str> = bad.lines().collect();
    assert_eq!(lines[..2], ["Title;ISSN;Metric;Rest;fault", ";;SJR;;"]);
    let row = &lines[2];
    assert!(row.starts_with("Heart B;1474-547X;many;\"a;b\";"), "{bad}");
    assert!(lines[2].contains("sjr: `many`"), "{bad}");
    assert!(lines[3].contains("name: is required"), "{bad}");
    // A second run of the same command changes nothing.
    let again = with(&["--allow-faults", "2", "--json"]).json();
    assert_eq!(again["datasets"]["journals"]["unchanged"], 2, "{again}");
    let exists = with(&["--allow-faults", "2", "--faults", "bad.csv"]);
    exists.assert_told(1, "bad.csv: the file exists");
    site.write(
        "right.csv",
        bad.replace("many", "1,25")
            .replace("\r\n;1050", "\r\nHeart D;1050"),
    );
    let right = site.json(["import", "right.csv", "--recipe", "list.toml"]);
    assert_eq!(right["datasets"]["journals"]["added"], 2, "{right}");
}

#[test]
fn bad_objects_are_written_as_lines_with_their_faults() {
    let site = Site::new();
    let list = "[{\"id\":1,\"name\":\"A\"},{\"id\":2,\"sjr\":[1],\"name\":\"B\"},{\"id\":3,\"name\":\"C\"}]";
    site.write("journals.json", list);
    let import =
        words!["import" "journals.json" "--create" "--allow-faults" "1" "--faults" "bad.jsonl"];
    let told = site.json(import);
    assert_eq!(told["datasets"]["journals"]["added"], 2, "{told}");
    let bad = fs::read_to_string(site.path("bad.jsonl")).unwrap();
    assert!(
        bad.starts_with("{\"id\":2,\"sjr\":[1],\"name\":\"B\",\"fault\":\"sjr: "),
        "{bad}"
    );
    site.write("right.jsonl", bad.replace("[1]", "1"));
    let right = site.json(["import", "right.jsonl", "--dataset", "journals"]);
    assert_eq!(right["datasets"]["journals"]["added"], 1, "{right}");
}

#[test]
fn rows_that_depend_on_bad_rows_are_bad_and_faults_of_files_are_not_allowed() {
    let site = Site::new();
    let folder = |name: &str, content: &str| site.write(name, content);
    folder(
        "organizations.csv",
        "id,name,url\n1,Heart Society,\n1,Lung Society,\n2,Liver Society,\n",
    );
    folder(
        "journals.csv",
        "id,name,organizations\n1,A,Heart Society\n2,B,Liver Society\n",
    );
    let files = words!["import" "organizations.csv" "journals.csv" "--create" "--json"];
    let told = site
        .run(files.iter().chain(&["--allow-faults", "3"]))
        .json();
    assert_eq!(told["bad_rows"], 3, "{told}");
    assert_eq!(told["organizations"]["added"], 1, "{told}");
    let cases = cases![
        "id,nmae\n1,A\n", "does not cover faults of whole files";
        "id,name\n1,\"A\n2,B\n", "does not cover faults of whole files";
        "id,name\n1,\n2,\n", "--allow-faults 2";
    ];
    for (content, expected) in cases {
        site.write("journals.csv", content);
        let refused = site.run("import journals.csv --allow-faults 1 --faults f.csv".split(' '));
        refused.assert_told(1, expected);
        // A file without a row would only be in the way of the next run.
        let written = std::fs::read_to_string(site.path("f.csv"));
        assert_eq!(written.is_ok(), expected == "--allow-faults 2", "{content}");
    }
    for options in [
        ["--replace", "--allow-faults=1"],
        ["--replace", "--faults=f"],
        ["--allow-faults", "10001"],
    ] {
        let refused = site.run(["import", "journals.csv"].iter().chain(&options));
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

#[test]
fn records_are_shown_by_their_names() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"Heart A\",\"abbv\":\"HA\"}\n{\"id\":2,\"name\":\"Lung\"}\n{\"id\":3,\"name\":\"LUNG\"}\n");
    let cases = cases![
        "heart-a", 0, "journals 1\n";
        "ha", 0, "journals 1\n";
        "Lung", 0, "journals 2: Lung\njournals 3: LUNG";
        "Heart B", 1, "no record of journals is named `Heart B`; did you mean `Heart A`?";
    ];
    for (name, code, expected) in cases {
        let done = site.run(["show", "journals", "--name", name]);
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(
            (done.stdout.clone() + &done.stderr).contains(expected),
            "{name}: {done:?}"
        );
    }
    assert_eq!(site.run(["show", "journals"]).code, Some(2));
}
