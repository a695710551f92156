//! The operator's contact, in all places that show it.

use super::client::Client;
use super::site::Site;

/// The text of a document for browsers.
fn page(client: &mut Client, target: &str) -> String {
    String::from_utf8(client.get(target).body).expect("UTF-8")
}

#[test]
fn a_contact_is_shown_where_readers_look() {
    let site = Site::with(3);
    // The variable, its URL and text in HTML, and the member of the OpenAPI document.
    let cases = cases![
        "feed+help@data.example", "mailto:feed+help@data.example", "feed+help@data.example",
            "/info/contact/email", "feed+help@data.example";
        "https://data.example/a&b", "https://data.example/a&amp;b", "https://data.example/a&amp;b",
            "/info/contact/url", "https://data.example/a&b";
    ];
    for (contact, url, text, member, value) in cases {
        let mut command = site.serve_command("");
        command.env("MEDFEED_CONTACT", contact);
        let server = site.start(command);
        let mut client = Client::new(server.address, None).with_header("accept", "text/html");
        let link = format!("<a href=\"{url}\">Contact: {text}</a>");
        for target in words!["/docs" "/docs/errors" "/docs/errors/rate_limited" "/nowhere"] {
            // Templates write the sign by its number.
            let page = page(&mut client, target).replace("&#38;", "&amp;");
            assert!(page.contains(&link), "{target}");
            assert!(!page.contains("{{contact"), "{target}");
        }
        let shown = page(&mut client, "/");
        let meta = format!("<meta name=\"medfeed-contact\" content=\"{url}\">");
        assert!(shown.contains(&meta), "{shown}");
        let document = client.get("/openapi.json").json();
        assert_eq!(document.pointer(member).expect(member), value);
        server.stop();
    }
    let server = site.serve();
    let mut client = Client::new(server.address, None).with_header("accept", "text/html");
    for target in ["/", "/docs", "/docs/errors/rate_limited", "/nowhere"] {
        let page = page(&mut client, target);
        assert!(!page.contains("Contact:"), "{target}");
        assert!(!page.contains("{{contact"), "{target}");
    }
    assert!(client.get("/openapi.json").json()["info"]["contact"].is_null());
    server.stop();
}
