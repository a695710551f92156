//! The explorer's page and the files that it loads.

use crate::harness::World;

const FILES: [(&str, &str); 6] = [
    ("/", "text/html; charset=utf-8"),
    ("/explorer/app.js", "text/javascript; charset=utf-8"),
    ("/worker.js", "text/javascript; charset=utf-8"),
    ("/explorer/style.css", "text/css; charset=utf-8"),
    ("/favicon.ico", "image/svg+xml"),
    ("/favicon.svg", "image/svg+xml"),
];

#[test]
fn files_are_revalidated_and_run_nothing_from_elsewhere() {
    let world = World::small();
    for (path, kind) in FILES {
        let answer = world.get("", path).expect(200);
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
        let header = answer.header("referrer-policy");
        assert_eq!(header, Some("no-referrer"), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        let again = world.request("GET", path, &[("if-none-match", &answer.etag())]);
        assert_eq!((again.status, again.text()), (304, String::new()), "{path}");
    }
}

#[test]
fn only_the_page_itself_makes_its_browser_forget() {
    let world = World::small();
    for (method, path, site, forgets) in [
        ("POST", "/forget", Some("same-origin"), true),
        ("POST", "/forget", Some("same-site"), false),
        ("POST", "/forget", Some("cross-site"), false),
        ("POST", "/forget", Some("none"), false),
        ("POST", "/forget", None, false),
        ("GET", "/forget", Some("same-origin"), false),
        ("PUT", "/forget", Some("same-origin"), false),
        ("POST", "/", Some("same-origin"), false),
        ("POST", "/v1/forget", Some("same-origin"), false),
    ] {
        let headers = site.map(|site| ("sec-fetch-site", site)).into_iter();
        let headers: Vec<(&str, &str)> = headers.collect();
        let answer = world.request(method, path, &headers);
        let cleared = answer.header("clear-site-data");
        let expected = forgets.then_some("\"storage\"");
        assert_eq!(cleared, expected, "{method} {path} {site:?}");
        assert_eq!(answer.status == 200, forgets, "{method} {path} {site:?}");
    }
}

#[test]
fn paths_of_the_explorer_are_no_endpoints() {
    let world = World::small();
    let document = world.get("", "/openapi.json").text();
    for (path, _) in FILES {
        assert!(path == "/" || !document.contains(path), "{path}");
    }
    for path in words![
        "/explorer" "/explorer/" "/explorer/mod.rs" "/explorer/views" "/explorer/views/" "/explorer/model/x.js"
        "/demo.json" "//"
    ] {
        world.get("", path).expect(404);
    }
}
