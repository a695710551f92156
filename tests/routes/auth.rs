//! Keys: the 401 and 403 of the contract.

use medfeed::model::time::now;
use medfeed::store::write::licensing::KeySettings;

use crate::harness::World;

const PATH: &str = "/v1/conferences?limit=1";

#[test]
fn keys_are_read_from_both_headers() {
    let world = World::small();
    let (key, other) = (world.key("full").text, world.key("onco").text);
    let bearer = |text: &str| format!("Bearer {text}");
    let ok = "";
    let cases: Vec<(Vec<(&str, String)>, &str)> = Vec::from(cases![
        vec![("authorization", bearer(&key))], ok;
        vec![("x-api-key", key.clone())], ok;
        vec![("authorization", bearer(&key)), ("x-api-key", key.clone())], ok;
        vec![], "missing_api_key";
        vec![("authorization", "Basic dXNlcg==".to_owned())], "missing_api_key";
        vec![("authorization", bearer("x"))], "invalid_api_key";
        vec![("x-api-key", "clé".to_owned())], "invalid_api_key";
        vec![("x-api-key", format!("{key}x"))], "invalid_api_key";
        vec![("authorization", bearer(&key)), ("x-api-key", other.clone())], "invalid_api_key";
    ]);
    for (headers, code) in &cases {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = headers.collect();
        let answer = world.request("GET", PATH, &headers);
        assert_eq!(answer.code(), *code, "{headers:?}: {}", answer.status);
        if *code != ok {
            assert_eq!(answer.status, 401);
            assert!(!answer.text().contains(&key), "a key is never repeated");
            assert!(!answer.text().contains(&other), "a key is never repeated");
        }
    }
}

#[test]
fn every_endpoint_except_status_needs_a_key() {
    let world = World::small();
    let paths = words![
        "conferences" "conferences/1" "conferences/changes" "journals" "journals/1" "journals/changes"
        "exports/conferences" "exports/journals" "exports/foo" "reference/therapy-areas" "reference/tags"
        "reference/organizations"
    ];
    for path in paths {
        for method in ["GET", "HEAD"] {
            world
                .request(method, &format!("/v1/{path}"), &[])
                .expect(401);
        }
        world
            .get("", &format!("/v1/{path}"))
            .expect_problem("missing_api_key", "Authorization: Bearer");
    }
}

#[test]
fn a_key_of_another_database_is_not_recognised() {
    let world = World::small();
    let other = World::empty();
    other.license("full", "conferences");
    let stranger = other.key("full").text;
    // Before the first poll it might be new.
    world
        .request("GET", PATH, &[("x-api-key", &stranger)])
        .expect_problem("unavailable", "cannot ask for new keys now");
    world.poll();
    world
        .request("GET", PATH, &[("x-api-key", &stranger)])
        .expect_problem("invalid_api_key", "not recognised");
}

#[test]
fn keys_get_401_after_their_end() {
    let world = World::small();
    let hour = 3_600;
    let timed = KeySettings {
        expires_at: Some(now().plus_s(hour)),
        ..KeySettings::default()
    };
    world.new_key("timed", "full", timed.clone());
    world.new_key("overlapping", "full", KeySettings::default());
    world.new_key("replaced", "full", KeySettings::default());
    world.new_key("revoked", "full", KeySettings::default());
    world.new_key("both", "full", timed);
    let id = |name: &str| world.key(name).id;
    let (successor, _) = world.edit(|edit| edit.replace_key(&id("overlapping"), hour).unwrap());
    world.edit(|edit| edit.replace_key(&id("replaced"), 0).unwrap());
    world.edit(|edit| edit.revoke_key(&id("revoked")).unwrap());
    world.edit(|edit| edit.revoke_key(&id("both")).unwrap());
    let cases = [
        // key, seconds ahead, error
        ("timed", 0, ""),
        ("timed", hour - 30, ""),
        ("timed", hour, "expired_api_key"),
        ("timed", hour * 9_000, "expired_api_key"),
        ("overlapping", 0, ""),
        ("overlapping", hour - 30, ""),
        ("overlapping", hour + 1, "revoked_api_key"),
        ("replaced", 0, "revoked_api_key"),
        ("revoked", 0, "revoked_api_key"),
        ("both", hour, "revoked_api_key"),
        ("timed", -5_000, ""),
        ("full", hour * 9_000, ""),
    ];
    for (key, ahead_s, code) in cases {
        world.wall_ahead_s.set(ahead_s);
        let answer = world.get(key, PATH);
        let found = answer.code();
        assert_eq!(found, code, "{key} {ahead_s} s ahead: {}", answer.status);
        world
            .request("GET", PATH, &[("x-api-key", successor.reveal())])
            .expect(200);
        world.get("", "/v1/status").expect(200);
    }
}

#[test]
fn a_removed_license_revokes_its_keys() {
    let world = World::small();
    world.new_key("second", "full", KeySettings::default());
    world.edit(|edit| edit.remove_license("full").unwrap());
    for key in ["full", "second"] {
        world
            .get(key, PATH)
            .expect_problem("revoked_api_key", "revoked");
    }
    world.get("onco", PATH).expect(200);
}

#[test]
fn a_replacement_has_the_old_keys_settings() {
    let world = World::small();
    let settings = KeySettings {
        label: Some("ETL".to_owned()),
        expires_at: Some(now().plus_s(600)),
        allowed_ips: vec!["192.0.2.0/24".parse().unwrap()],
    };
    let old = world.new_key("old", "onco", settings.clone());
    let (new, record) = world.edit(|edit| edit.replace_key(&old.id, 60).unwrap());
    let expected = (settings.label, settings.expires_at);
    assert_eq!((record.label, record.expires_at), expected);
    let ask = || world.request("GET", PATH, &[("x-api-key", new.reveal())]);
    ask().expect(200);
    world.wall_ahead_s.set(700);
    ask().expect_problem("expired_api_key", "has expired");
    world.wall_ahead_s.set(0);
    world.address.set("198.51.100.1".parse().unwrap());
    ask().expect_problem("ip_not_allowed", "198.51.100.1");
    assert!(
        world.edit(|edit| edit.replace_key(&old.id, 0).is_err()),
        "a key is replaced once"
    );
}
