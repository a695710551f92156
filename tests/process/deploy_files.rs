//! The files for containers in `deploy`: the program knows their variables, and their commands run with them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::manuals;
use super::monitoring::admin_address;
use super::operators_page::get_from;
use super::origin::url_of;
use super::site::{Done, SOON, Site, conferences_of_version, wait_until};
use crate::sources::all_sources;

fn read(name: &str) -> String {
    manuals::read(&format!("deploy/{name}"))
}

/// The words of a list such as `[serve, --from, "file:///feed"]`.
fn words(list: &str) -> Vec<String> {
    let inner = list
        .trim()
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'))
        .expect("a list in one line");
    inner
        .split(',')
        .map(|word| word.trim().trim_matches('"').to_owned())
        .collect()
}

/// The variables that the image sets.
fn image_variables() -> BTreeMap<String, String> {
    let image = read("Dockerfile");
    let (_, last_stage) = image.split_once("FROM scratch").unwrap();
    let mut line = last_stage.lines();
    let line = line.find_map(|line| line.strip_prefix("ENV ")).unwrap();
    line.split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(a, b)| (a.into(), b.into()))
        .collect()
}

/// The further variables of replicas.
fn replica_variables(compose: &str) -> BTreeMap<String, String> {
    let (_, block) = compose.split_once("x-environment: &environment\n").unwrap();
    let lines = block.lines().take_while(|line| line.starts_with("  "));
    let lines = lines.map(str::trim);
    let pairs = lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(": ").unwrap());
    pairs
        .map(|(name, value)| {
            (
                name.to_owned(),
                value.replace("${MEDFEED_HOST:-localhost}", "localhost"),
            )
        })
        .collect()
}

#[test]
fn every_variable_is_one_of_the_program() {
    let site = Site::new();
    let helps = ["serve", "publish", "import"]
        .map(|command| site.run(["help", command]).stdout)
        .concat();
    let mut found = 0;
    for name in words![
        "Dockerfile" "compose.yaml" "compose.replicas.yaml" "medfeed.service" "medfeed-publish.service"
        "medfeed-backup.service"
    ] {
        let text = read(name);
        let words = text.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'));
        for variable in words.filter(|word| word.starts_with("MEDFEED_") && *word != "MEDFEED_HOST")
        {
            assert!(
                helps.contains(&format!("[env: {variable}=")),
                "{name}: {variable}"
            );
            found += 1;
        }
    }
    assert!(found > 8, "{found}");
}

#[test]
fn composed_replicas_follow_the_composed_publisher() {
    let compose = read("compose.replicas.yaml");
    let commands: Vec<_> = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("command: "))
        .map(words)
        .collect();
    let of = |name: &str| {
        commands
            .iter()
            .find(|words| words[0] == name)
            .expect("a command")
            .clone()
    };
    let (origin, replica) = (Site::new(), Site::new());
    let url = url_of(&origin.path("feed"));
    let command = |site: &Site, name: &str, variables: &BTreeMap<String, String>| -> Command {
        let mut command = site.command(
            of(name)
                .iter()
                .map(|word| word.replace("file:///feed", &url)),
        );
        command.envs(image_variables()).envs(variables);
        // Each container has a database, a port and a temporary folder of its own.
        command
            .env("MEDFEED_DB", site.db())
            .env("MEDFEED_LISTEN", "127.0.0.1:0")
            .env("TMPDIR", site.folder());
        if variables.contains_key("MEDFEED_ADMIN_LISTEN") {
            command.env("MEDFEED_ADMIN_LISTEN", "127.0.0.1:0");
        }
        command
    };
    origin.import("conferences.jsonl", conferences_of_version(3, 0));
    let key = origin.open_key();
    // The origin has the same variables: with an object store they hold its credentials.
    let variables = replica_variables(&compose);
    let of_origin = "    environment: *environment\n    command: [publish";
    assert!(compose.contains(of_origin), "{of_origin}");
    let published = command(&origin, "publish", &variables)
        .arg("--once")
        .output()
        .unwrap();
    assert!(
        published.status.success(),
        "{}",
        String::from_utf8_lossy(&published.stderr)
    );
    let server = replica.start(command(&replica, "serve", &variables));
    assert_eq!(
        server.client(&key).get("/v1/conferences/1").json()["data"]["venue"],
        "version 0"
    );
    // It logs in the format that the image sets.
    server.wait_for_log("\"replica_of\"");
    let admin = wait_until("the log names the address of monitoring", SOON, || {
        admin_address(&server.logged())
    });

    // The balancer's replicas are those of the compose file, and it checks their readiness at their monitoring port.
    let balancer = read("Caddyfile.replicas");
    let asked: Vec<_> = balancer
        .split_whitespace()
        .filter_map(|word| word.strip_suffix(":8080"))
        .collect();
    assert_eq!(
        asked,
        words!["replica-1" "replica-2" "replica-2" "replica-1" "replica-1" "replica-2"]
    );
    for name in asked {
        assert!(
            compose.contains(&format!("\n  {name}:\n    <<: *replica\n")),
            "{name}"
        );
    }
    let (_, ready) = balancer
        .split_once("health_uri /readyz\n\t\thealth_port ")
        .unwrap();
    let port = ready.lines().next().unwrap();
    for (name, status) in [
        ("replica-1", 200),
        ("replica-2", 200),
        ("evil.example", 421),
    ] {
        assert_eq!(
            get_from(admin, &format!("{name}:{port}"), "/readyz").status,
            status,
            "{name}"
        );
    }
    server.stop();
    assert_eq!(
        variables["MEDFEED_ADMIN_LISTEN"]
            .rsplit_once(':')
            .unwrap()
            .1,
        port
    );
}

#[test]
fn the_units_hide_no_file_that_the_program_reads() {
    for unit in words!["medfeed.service" "medfeed-publish.service" "medfeed-backup.service"] {
        assert!(read(unit).contains("\nProcSubset=pid\n"), "{unit}");
    }
    let sources: String = all_sources().into_values().collect();
    let names = sources.split("\"/proc/").skip(1);
    let names: Vec<_> = names.map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(names.len() >= 4, "{names:?}");
    // These units leave only the processes in /proc.
    assert!(
        names.iter().all(|name| name.starts_with("self/")),
        "{names:?}"
    );
}

/// The commands of a unit, as systemd gives them to the system.
fn commands_of(unit: &str) -> Vec<String> {
    let text = read(unit);
    let commands = text
        .lines()
        .filter_map(|line| line.strip_prefix("ExecStart="));
    commands
        .map(|line| line.replace("$$", "$").replace("%%", "%"))
        .collect()
}

#[test]
fn the_nightly_backup_keeps_seven_checked_copies() {
    let site = Site::with(3);
    let backups = site.path("backups");
    fs::create_dir(&backups).unwrap();
    // `medfeed` of this build, and a `date` of the test.
    let programs = site.path("programs");
    fs::create_dir(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_medfeed"), programs.join("medfeed")).unwrap();
    let content = "#!/bin/sh\nexec /bin/date -d \"$TODAY\" \"$@\"\n";
    let date = site.write("programs/date", content);
    fs::set_permissions(date, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let night = |day: u32| -> bool {
        commands_of("medfeed-backup.service").iter().all(|line| {
            let mut command = site.command_of("/bin/sh");
            command
                .args(["-c", line])
                .current_dir(&backups)
                .env("PATH", &path)
                .env("TODAY", format!("2027-03-{day:02}"));
            Done::of(&mut command).code == Some(0)
        })
    };
    let copies = || {
        let entries = fs::read_dir(&backups).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    for day in 1..=12 {
        site.import(
            "conferences.jsonl",
            conferences_of_version(3, u64::from(day)),
        );
        assert!(night(day), "night {day}");
        let expected = usize::min(usize::try_from(day).unwrap(), 7);
        assert_eq!(copies().len(), expected, "{:?}", copies());
    }
    let all = copies();
    assert_eq!(
        all,
        (1..=7)
            .map(|day| format!("feed-{day}.redb"))
            .collect::<Vec<_>>()
    );
    // 12 March 2027 is a Friday, the fifth day of the week.
    let newest = site.json(["check", "--db", "backups/feed-5.redb"]);
    let committed = &site.json(["log", "--limit", "1"])["commits"][0];
    assert_eq!(newest["findings"], serde_json::json!([]), "{newest}");
    let copied = &site.json(["log", "--limit", "1", "--db", "backups/feed-5.redb"])["commits"][0];
    assert_eq!(copied, committed);
    // A night without a backup changes no copy.
    fs::rename(site.db(), site.path("away.redb")).unwrap();
    assert!(!night(13));
    assert_eq!(copies(), all);
}

#[test]
fn every_unit_is_in_the_package() {
    let package = manuals::read("Cargo.toml");
    for unit in words!["medfeed-publish.service" "medfeed-backup.service" "medfeed-backup.timer"] {
        let asset = format!("[\"deploy/{unit}\", \"usr/lib/systemd/system/\", \"644\"]");
        assert!(package.contains(&asset), "{unit}");
    }
    assert!(read("medfeed-backup.timer").contains("\n[Timer]\nOnCalendar="));
    assert!(
        manuals::read("docs/backups.md").contains("systemctl enable --now medfeed-backup.timer")
    );
}

#[test]
fn containers_have_an_init() {
    // Process 1 ignores signals that it does not catch, so Ctrl-C would not stop a command.
    for line in read("Dockerfile")
        .lines()
        .filter(|line| line.contains("docker run "))
    {
        assert!(line.contains("docker run --init "), "{line}");
    }
    for name in ["compose.yaml", "compose.replicas.yaml"] {
        let text = read(name);
        let [images, inits] =
            ["  image: medfeed\n", "  init: true\n"].map(|line| text.matches(line).count());
        assert!(
            images > 0 && images == inits,
            "{name}: {images} services, {inits} with `init`"
        );
    }
}
