//! The URL of a bucket: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///FOLDER`.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use url::Url;

/// The URL of a bucket: a store, and a prefix for the names of all objects. It contains no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUrl {
    text: String,
    pub(super) location: BucketLocation,
}

/// The location that a [`BucketUrl`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BucketLocation {
    /// An absolute path of a folder on this machine.
    Folder(PathBuf),
    /// A bucket (in Azure a container) and a prefix without outer slashes, which may be empty.
    Remote {
        kind: StoreKind,
        bucket: String,
        prefix: String,
    },
}

/// The kinds of object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

const FORMS: &str =
    "write it as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER";

impl FromStr for BucketUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<BucketUrl, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(if text.starts_with('/') {
                format!("`{text}` is a path; write it as file://{text}")
            } else {
                format!("`{text}` is not the URL of a bucket; {FORMS}")
            });
        };
        let kind = match scheme {
            "s3" => StoreKind::S3,
            "gs" => StoreKind::Google,
            "az" => StoreKind::Azure,
            "file" => return folder(text),
            _ => return Err(format!("`{scheme}` is not a kind of bucket; {FORMS}")),
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(format!("`{text}` names no bucket; {FORMS}"));
        }
        if bucket.contains(['@', ':']) {
            return Err(
                "the URL of a bucket holds neither credentials nor a port; set them in the environment (AWS_*, \
                        GOOGLE_*, AZURE_*)"
                    .to_owned(),
            );
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !bucket.chars().all(is_name) {
            return Err(format!("`{bucket}` cannot be a bucket's name; {FORMS}"));
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty()
            && !prefix.split('/').all(|part| {
                !matches!(part, "" | "." | "..") && part.chars().all(|c| is_name(c) || c == '=')
            })
        {
            return Err(format!(
                "`{prefix}` cannot be a prefix; use letters, digits, `-`, `_`, `.` and `=`, with single slashes between"
            ));
        }
        let text = format!("{scheme}://{bucket}/{prefix}");
        Ok(BucketUrl {
            text: text.trim_end_matches('/').to_owned(),
            location: BucketLocation::Remote {
                kind,
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
            },
        })
    }
}

fn folder(text: &str) -> Result<BucketUrl, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}; {FORMS}"))?;
    if let Some(host) = url.host_str() {
        return Err(format!(
            "`{host}` would be another machine; write a folder of this one as file:///FOLDER"
        ));
    }
    let path = url
        .to_file_path()
        .ok()
        .filter(|path| path.parent().is_some());
    let (Some(path), None, None) = (path, url.query(), url.fragment()) else {
        return Err(format!(
            "`{text}` names no folder; write it as file:///FOLDER, with `%` and two digits for `?`, `#`"
        ));
    };
    let text = url.as_str().trim_end_matches('/').to_owned();
    Ok(BucketUrl {
        text,
        location: BucketLocation::Folder(path),
    })
}

impl Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let remote = |kind, bucket: &str, prefix: &str| {
            Ok(BucketLocation::Remote {
                kind,
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
            })
        };
        let cases = cases![
            "s3://feed", remote(StoreKind::S3, "feed", ""), "s3://feed";
            "s3://feed/", remote(StoreKind::S3, "feed", ""), "s3://feed";
            "s3://my.feed/a/b=1/", remote(StoreKind::S3, "my.feed", "a/b=1"), "s3://my.feed/a/b=1";
            "gs://feed_x/a", remote(StoreKind::Google, "feed_x", "a"), "gs://feed_x/a";
            "az://feed/a", remote(StoreKind::Azure, "feed", "a"), "az://feed/a";
            "file:///srv/feed/", Ok(BucketLocation::Folder("/srv/feed".into())), "file:///srv/feed";
            "file:///srv/my%20feed", Ok(BucketLocation::Folder("/srv/my feed".into())), "file:///srv/my%20feed";
            "/srv/feed", Err("`/srv/feed` is a path; write it as file:///srv/feed"), "";
            "feed", Err("`feed` is not the URL of a bucket"), "";
            "https://feed.example.org", Err("`https` is not a kind of bucket"), "";
            "S3://feed", Err("`S3` is not a kind of bucket"), "";
            "s3://", Err("`s3://` names no bucket"), "";
            "s3:///prefix", Err("names no bucket"), "";
            "s3://key:secret@feed/x", Err("holds neither credentials nor a port"), "";
            "s3://feed:9000/x", Err("holds neither credentials nor a port"), "";
            "s3://fe ed/x", Err("`fe ed` cannot be a bucket's name"), "";
            "s3://feed//x", Err("`/x` cannot be a prefix"), "";
            "s3://feed/a/../x", Err("`a/../x` cannot be a prefix"), "";
            "s3://feed/x?y=1", Err("`x?y=1` cannot be a prefix"), "";
            "s3://feed/a b", Err("`a b` cannot be a prefix"), "";
            "s3://feed/a/b//", remote(StoreKind::S3, "feed", "a/b"), "s3://feed/a/b";
            "s3://feed/a/./x", Err("`a/./x` cannot be a prefix"), "";
            "s3://feed/..", Err("`..` cannot be a prefix"), "";
            "s3://a=b/x", Err("`a=b` cannot be a bucket's name"), "";
            "s3://user@feed", Err("holds neither credentials nor a port"), "";
            "s3://feed/a@b", Err("`a@b` cannot be a prefix"), "";
            "file:///srv/feed#x", Err("names no folder"), "";
            "file:///srv//", Ok(BucketLocation::Folder("/srv/".into())), "file:///srv";
            "file://srv/feed", Err("`srv` would be another machine"), "";
            "file:///", Err("`file:///` names no folder"), "";
            "file:///srv/feed?x", Err("names no folder"), "";
        ];
        let url = |text: &str| text.parse::<BucketUrl>().unwrap();
        assert!(url("s3://feed/a/b") != url("s3://feed/a/bc"));
        assert!(url("s3://feed/a") != url("gs://feed/a"));
        for (text, expected, shown) in cases {
            match (text.parse::<BucketUrl>(), expected) {
                (Ok(url), Ok(location)) => {
                    assert_eq!(url.location, location, "{text}");
                    assert_eq!(url.to_string(), shown, "{text}");
                    assert_eq!(url.to_string().parse(), Ok(url), "{text}");
                }
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{text}: {error}"),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
