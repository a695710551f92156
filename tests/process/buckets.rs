//! Buckets in a folder and in S3: the same cases for both, then the cases of only one of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use medfeed::bucket::{Bucket, BucketError, BucketUrl, Created, SealKey};

use super::published::seal_key;
use super::s3::{Fault, S3};
use super::site::Site;

fn in_folder(folder: &Path, seal: Option<SealKey>) -> Bucket {
    let url: BucketUrl = format!("file://{}", folder.display()).parse().unwrap();
    Bucket::open_with(&url, seal, &[]).unwrap()
}

fn in_s3(s3: &S3, prefix: &str, seal: Option<SealKey>) -> Bucket {
    open(&format!("{}{prefix}", s3.url), seal, &s3.environment()).unwrap()
}

fn open(
    url: &str,
    seal: Option<SealKey>,
    environment: &[(String, String)],
) -> Result<Bucket, BucketError> {
    Bucket::open_with(&url.parse().unwrap(), seal, environment)
}

fn bytes(bucket: &Bucket, name: &str) -> Option<Vec<u8>> {
    bucket.get(name).unwrap().map(|object| object.bytes)
}

fn names(bucket: &Bucket, folder: &str, after: Option<&str>) -> Vec<String> {
    bucket
        .list(folder, after)
        .unwrap()
        .into_iter()
        .map(|listed| listed.name)
        .collect()
}

/// The name that tests of the store create.
const PROBE: &str = "probe/0123456789abcdef";

/// Runs a test with every kind of bucket. Each is new and has been probed.
fn with_each(test: impl Fn(&str, &Bucket)) {
    let site = Site::new();
    let key = || Some(SealKey::load(&seal_key(&site, "seal-key", 0)).unwrap());
    let s3 = S3::start();
    for (kind, bucket) in [
        ("folder", in_folder(&site.path("a/plain"), None)),
        ("sealed folder", in_folder(&site.path("sealed"), key())),
        ("s3", in_s3(&s3, "", None)),
        ("s3 below a prefix", in_s3(&s3, "/some/prefix", None)),
        ("sealed s3", in_s3(&s3, "/sealed", key())),
    ] {
        bucket
            .probe(PROBE)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        test(kind, &bucket);
        if kind == "s3" {
            for name in s3.names() {
                s3.set_object(&name, None);
            }
        }
    }
}

#[test]
fn a_bucket_returns_its_stored_objects() {
    with_each(|kind, bucket| {
        assert_eq!(
            names(bucket, "probe", None),
            [""; 0],
            "{kind}: probing leaves nothing behind"
        );
        assert_eq!(bytes(bucket, "log/1"), None, "{kind}");
        assert_eq!(names(bucket, "log", None), [""; 0], "{kind}");
        let large: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        for (name, content) in [("log/1", &b"one"[..]), ("log/2", b""), ("log/3", &large)] {
            assert_eq!(
                bucket.create(name, content),
                Ok(Created::New),
                "{kind}: {name}"
            );
            assert_eq!(
                bytes(bucket, name).as_deref(),
                Some(content),
                "{kind}: {name}"
            );
            assert_eq!(
                bucket.create(name, b"other"),
                Ok(Created::Exists),
                "{kind}: {name}"
            );
            assert_eq!(
                bytes(bucket, name).as_deref(),
                Some(content),
                "{kind}: {name}"
            );
        }
        for content in [b"first", b"again"] {
            bucket.put("alive", content).unwrap();
            let expected = Some(&content[..]);
            assert_eq!(bytes(bucket, "alive").as_deref(), expected, "{kind}");
        }
        for name in ["log/10", "log/4", "logs/1", "log/5/x"] {
            bucket.put(name, b"x").unwrap();
        }
        // Several pages over S3.
        let all = ["log/1", "log/10", "log/2", "log/3", "log/4", "log/5/x"];
        assert_eq!(names(bucket, "log", None), all, "{kind}");
        assert_eq!(names(bucket, "log", Some("log/2")), all[3..], "{kind}");
        assert_eq!(names(bucket, "log", Some("log/25")), all[3..], "{kind}");
        assert_eq!(names(bucket, "log", Some("log/9")), [""; 0], "{kind}");
        let listed = &bucket.list("log", None).unwrap()[3];
        let found = bucket.get("log/3").unwrap().unwrap();
        assert_eq!(listed.modified, found.modified, "{kind}");
        assert_eq!(
            listed.bytes,
            large.len() as u64 + if bucket.is_sealed() { 33 } else { 0 },
            "{kind}"
        );
        for name in all {
            bucket.delete(name).unwrap();
            bucket.delete(name).unwrap();
            assert_eq!(bytes(bucket, name), None, "{kind}");
        }
        assert_eq!(names(bucket, "log", None), [""; 0], "{kind}");
        assert_eq!(bucket.create("log/1", b"anew"), Ok(Created::New), "{kind}");
        assert!(
            matches!(bucket.get("../x"), Err(BucketError::Refused(_))),
            "{kind}"
        );
    });
}

#[test]
fn one_of_many_concurrent_creates_succeeds() {
    with_each(|kind, bucket| {
        for round in 0..10 {
            let name = format!("log/{round}");
            let racers: Vec<String> = (0..8).map(|racer| format!("racer {racer}")).collect();
            let won: Vec<&String> = thread::scope(|scope| {
                let race = |racer: &String| {
                    bucket.create(&name, racer.as_bytes()).unwrap() == Created::New
                };
                let threads: Vec<_> = racers
                    .iter()
                    .map(|racer| (racer, scope.spawn(move || race(racer))))
                    .collect();
                threads
                    .into_iter()
                    .filter_map(|(racer, thread)| thread.join().unwrap().then_some(racer))
                    .collect()
            });
            let [winner] = won[..] else {
                panic!("{kind}: {won:?} created {name}")
            };
            let expected = Some(winner.clone().into_bytes());
            assert_eq!(bytes(bucket, &name), expected, "{kind}");
        }
    });
}

#[test]
fn a_bucket_folder_is_private_and_must_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("some/bucket");
    let bucket = in_folder(&place, None);
    // Nothing is written if a disk may be missing.
    for error in [
        bucket.get("log/1").unwrap_err(),
        bucket.create("log/1", b"x").unwrap_err(),
    ] {
        assert!(
            matches!(&error, BucketError::Unreachable(text) if text.contains("there is no folder")),
            "{error}"
        );
    }
    bucket.probe(PROBE).unwrap();
    bucket.create("log/1", b"x").unwrap();
    let mode = |path: &str| fs::metadata(place.join(path)).unwrap().permissions().mode() & 0o777;
    let expected = [0o700, 0o700, 0o600];
    assert_eq!([mode(""), mode("log"), mode("log/1")], expected);
    // The mode of an existing folder decides who may read new files.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o750)).unwrap();
    bucket.put("replicas/a", b"x").unwrap();
    assert_eq!([mode("replicas"), mode("replicas/a")], [0o750, 0o640]);
    fs::set_permissions(&place, fs::Permissions::from_mode(0o770)).unwrap();
    bucket.put("parts/a/0", b"x").unwrap();
    let expected = [0o770, 0o770, 0o660];
    assert_eq!(["parts", "parts/a", "parts/a/0"].map(mode), expected);
    // A draft that a killed program left is not listed, and is removed after a day.
    let draft = place.join(".draft-killed");
    fs::write(&draft, b"x").unwrap();
    let two_days_ago = fs::metadata(&draft).unwrap().modified().unwrap()
        - std::time::Duration::from_secs(2 * 86_400);
    bucket.probe(PROBE).unwrap();
    assert!(draft.exists(), "another program may be writing it");
    fs::File::options()
        .write(true)
        .open(&draft)
        .unwrap()
        .set_modified(two_days_ago)
        .unwrap();
    bucket.probe(PROBE).unwrap();
    let left = fs::read_dir(&place).unwrap();
    let mut left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["log", "parts", "replicas"]);
    // Another folder under the path, such as the one below a mount.
    fs::rename(&place, folder.path().join("away")).unwrap();
    fs::create_dir(&place).unwrap();
    let error = bucket.create("log/2", b"x").unwrap_err();
    assert!(
        matches!(&error, BucketError::Unreachable(text) if text.contains("another folder")),
        "{error}"
    );
    fs::remove_dir(&place).unwrap();
    fs::rename(folder.path().join("away"), &place).unwrap();
    assert_eq!(bucket.create("log/2", b"x"), Ok(Created::New));
    let file = in_folder(&place.join("log/1"), None);
    assert!(
        matches!(file.get("log/1"), Err(BucketError::Refused(text)) if text.contains("is a file"))
    );
}

#[test]
fn a_store_cannot_read_or_change_sealed_objects() {
    let (site, s3) = (Site::new(), S3::start());
    let seal = Some(SealKey::load(&seal_key(&site, "seal-key", 0)).unwrap());
    let bucket = in_s3(&s3, "/x", seal);
    bucket.create("log/1", b"secret text").unwrap();
    let stored = s3.object("x/log/1").unwrap();
    assert!(!stored.windows(6).any(|window| window == b"secret"));
    // Objects that another program swaps, changes or replaces.
    bucket.create("log/2", b"another text").unwrap();
    let mut flipped = stored.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for wrong in [
        s3.object("x/log/2").unwrap(),
        flipped,
        b"secret text".to_vec(),
    ] {
        s3.set_object("x/log/1", Some(wrong));
        let refused = bucket.get("log/1").unwrap_err();
        assert!(
            matches!(&refused, BucketError::Damaged { name, .. } if name == "log/1"),
            "{refused}"
        );
    }
    s3.set_object("x/log/1", Some(stored));
    let expected = Some(&b"secret text"[..]);
    assert_eq!(bytes(&bucket, "log/1").as_deref(), expected);
}

#[test]
fn temporary_and_lasting_faults_of_a_store_are_distinguished() {
    let s3 = S3::start();
    let bucket = in_s3(&s3, "", None);
    let always = usize::MAX;
    bucket.create("log/1", b"first entry").unwrap();

    // A temporary failure is retried unnoticed.
    for (method, fault) in [
        ("GET", Fault::Status(503)),
        ("GET", Fault::Status(429)),
        ("GET", Fault::LostAnswer),
        ("GET", Fault::HalfBody),
        ("GET", Fault::Code(500, "InternalError")),
    ] {
        s3.fail(method, "log/1", fault, 1);
        assert_eq!(
            bytes(&bucket, "log/1").as_deref(),
            Some(&b"first entry"[..]),
            "{fault:?}"
        );
    }
    s3.fail("PUT", "log/2", Fault::Status(503), 1);
    assert_eq!(bucket.create("log/2", b"second"), Ok(Created::New));

    // The answer to our own put is lost. It is sent again, and the name exists; its bytes are ours.
    s3.fail("PUT", "log/3", Fault::LostAnswer, 1);
    let created = bucket.create("log/3", b"third");
    assert!(
        matches!(
            created,
            Ok(Created::Exists) | Err(BucketError::Unreachable(_))
        ),
        "{created:?}"
    );
    assert_eq!(bytes(&bucket, "log/3").as_deref(), Some(&b"third"[..]));
    // A conflict does not mean that the object exists.
    s3.fail(
        "PUT",
        "log/4",
        Fault::Code(409, "ConditionalRequestConflict"),
        1,
    );
    assert_eq!(bucket.create("log/4", b"fourth"), Ok(Created::Exists));
    assert_eq!(bytes(&bucket, "log/4"), None);
    assert_eq!(bucket.create("log/4", b"fourth"), Ok(Created::New));
    // Other conflicts with a running request are temporary.
    for method in ["PUT", "DELETE"] {
        s3.fail(method, "alive", Fault::Code(409, "OperationAborted"), 1);
        let done = || {
            if method == "PUT" {
                bucket.put("alive", b"x")
            } else {
                bucket.delete("alive")
            }
        };
        let error = done().unwrap_err();
        assert!(
            error.is_transient() && error.to_string().contains("another request is in progress"),
            "{method}: {error}"
        );
        done().unwrap();
    }
    // A slow request is not lost.
    s3.fail("PUT", "log/5", Fault::Held, 1);
    thread::scope(|scope| {
        let slow = scope.spawn(|| bucket.create("log/5", b"fifth"));
        s3.wait_for_held();
        assert_eq!(
            bytes(&bucket, "log/5").as_deref(),
            Some(&b"fifth"[..]),
            "other requests are answered"
        );
        s3.release();
        assert_eq!(slow.join().unwrap(), Ok(Created::New));
    });

    // Reading an object that does not exist yet takes one request.
    let before = s3.requests().len();
    assert_eq!(bytes(&bucket, "log/6"), None);
    assert_eq!(s3.requests()[before..], ["GET feed/log/6"]);

    // Failures that last through all attempts.
    let cases = cases![
        "GET", Fault::Status(503), true, "cannot be reached to read `log/1` (503";
        "GET", Fault::HalfBody, true, "to read `log/1`";
        "PUT", Fault::Code(500, "InternalError"), true, "cannot be reached to create `log/9` (500 InternalError";
        "GET", Fault::Code(403, "AccessDenied"), false, "they permit s3:GetObject below the prefix and s3:ListBucket";
        "PUT", Fault::Code(403, "AccessDenied"), false, "s3:PutObject below the prefix";
        "PUT", Fault::Code(403, "RequestTimeTooSkewed"), false, "set its clock";
        "PUT", Fault::Code(501, "NotImplemented"), false, "use a store that supports conditional puts";
        "GET", Fault::Code(400, "AuthorizationHeaderMalformed"), false, "set AWS_REGION to the bucket's";
        "GET", Fault::Code(404, "NoSuchBucket"), false, "there is no bucket `feed`";
    ];
    for (method, fault, is_transient, expected) in cases {
        s3.fail(method, "log/", fault, always);
        let error = match method {
            "GET" => bucket.get("log/1").unwrap_err(),
            _ => bucket.create("log/9", b"x").unwrap_err(),
        };
        s3.heal();
        assert!(error.to_string().contains(expected), "{fault:?}: {error}");
        assert_eq!(error.is_transient(), is_transient, "{fault:?}: {error}");
    }
    assert_eq!(bytes(&bucket, "log/9"), None);
}

#[test]
fn wrong_bucket_settings_are_refused_with_a_remedy() {
    let s3 = S3::start();
    let environment = s3.environment();
    let with = |name: &str, value: Option<&str>| {
        let others = environment.iter();
        let others = others.filter(|(other, _)| other != name).cloned();
        others
            .chain(value.map(|value| (name.to_owned(), value.to_owned())))
            .collect::<Vec<_>>()
    };
    let cases = cases![
        "s3://other", environment.clone(), false, "there is no bucket `other` (404 NoSuchBucket";
        "s3://feed", with("AWS_SECRET_ACCESS_KEY", Some("wrong")), false,
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY";
        "s3://feed", with("AWS_ACCESS_KEY_ID", Some("wrong")), false, "check AWS_ACCESS_KEY_ID";
        "s3://feed", with("AWS_SECRET_ACCESS_KEY", None), false, "s3://feed cannot be used: ";
        "s3://feed", with("AWS_ALLOW_HTTP", None), false, "needs AWS_ALLOW_HTTP=true";
        "s3://feed", with("AWS_CONDITIONAL_PUT", Some("disabled")), false, "leave AWS_CONDITIONAL_PUT unset";
        "s3://feed", with("AWS_ENDPOINT_URL", Some("http://127.0.0.1:1")), true,
            "check the network and the endpoint (AWS_ENDPOINT_URL";
        "az://feed", Vec::new(), false, "check AZURE_STORAGE_ACCOUNT_NAME";
    ];
    for (url, environment, is_transient, expected) in cases {
        let tried = open(url, None, &environment).and_then(|bucket| bucket.probe(PROBE));
        let error = tried.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(error.is_transient(), is_transient, "{expected}: {error}");
        assert!(!error.to_string().contains("wJalrXUtnFEMI"), "{error}");
    }
}

#[test]
fn the_url_of_the_bucket_overrides_the_environment() {
    let s3 = S3::start();
    for name in ["AWS_BUCKET", "AWS_BUCKET_NAME"] {
        let mut environment = s3.environment();
        environment.push((name.to_owned(), "other".to_owned()));
        let bucket = open(&s3.url, None, &environment).unwrap();
        assert_eq!(bucket.put(name, b"x"), Ok(()), "{name}");
        assert_eq!(s3.object(name).as_deref(), Some(&b"x"[..]), "{name}");
    }
}
