//! Mapping errors of the `object_store` crate to [`BucketError`].

use crate::model::Joined;
use object_store::Error;

use super::object::BucketError;
use super::url::StoreKind;

/// An action on an object, as messages name it.
#[derive(Clone, Copy, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Action {
    Read,
    Create,
    Write,
    List,
    Delete,
}

/// Maps the errors of one bucket.
#[derive(Debug)]
pub struct ErrorMapper {
    pub url: String,
    pub bucket: String,
    pub kind: StoreKind,
    pub has_credentials: bool,
}

/// The texts of messages about one kind of store.
struct Advice {
    /// The variables of the endpoint.
    endpoint: &'static str,
    /// Advice about the variables that hold credentials.
    variables: &'static str,
    without_credentials: &'static str,
    /// The permissions that medfeed needs.
    permissions: &'static str,
}

struct Failure {
    status: Option<u16>,
    /// The error code in the response, such as `NoSuchBucket`.
    code: String,
    /// The innermost cause, in one line.
    text: String,
}

impl ErrorMapper {
    /// Returns the error for a configuration in the environment that cannot be used.
    pub fn configuration(&self, error: &Error) -> BucketError {
        BucketError::Refused(format!(
            "{} cannot be used: {}; {}",
            self.url,
            Failure::of(error).text,
            self.advice().variables
        ))
    }

    /// Returns a temporary error. `detail` follows the URL.
    pub fn unreachable(&self, detail: String) -> BucketError {
        BucketError::Unreachable(format!("{} {detail}", self.url))
    }

    /// Whether the bucket exists and has no such object.
    pub fn is_absent(&self, error: &Error) -> bool {
        matches!(error, Error::NotFound { .. }) && !Failure::of(error).is_of_the_bucket()
    }

    pub fn map(&self, action: Action, name: &str, error: &Error) -> BucketError {
        let failure = Failure::of(error);
        let ErrorMapper { url, bucket, .. } = self;
        let text = &failure.text;
        let Advice {
            endpoint,
            variables,
            permissions,
            ..
        } = self.advice();
        let refused = match (error, failure.status) {
            _ if failure.is_of_the_bucket() || matches!(error, Error::NotFound { .. }) => {
                format!(
                    "there is no bucket `{bucket}` ({text}); create it, or check the URL and the endpoint ({endpoint})"
                )
            }
            (Error::NotImplemented { .. } | Error::NotSupported { .. }, _) | (_, Some(501)) => {
                format!(
                    "{url} cannot {action} `{name}` ({text}); use a store that supports conditional puts, and leave \
                 AWS_CONDITIONAL_PUT unset"
                )
            }
            (_, Some(300..400)) => {
                format!(
                    "{url} redirects to another address ({text}); check the endpoint ({endpoint})"
                )
            }
            _ if text.contains("without LOCATION")
                || failure.code == "AuthorizationHeaderMalformed" =>
            {
                format!("{url} is in another region ({text}); set AWS_REGION to the bucket's")
            }
            _ if failure.code == "RequestTimeTooSkewed" => {
                format!("{url} rejects the time of this machine ({text}); set its clock")
            }
            (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }, _) => format!(
                "{url} refuses to {action} `{name}` ({text}); {variables}, and that they permit {permissions}"
            ),
            // Callers of `create` retry after such a response.
            (Error::AlreadyExists { .. } | Error::Precondition { .. }, _) | (_, Some(409)) => {
                return self.unreachable(format!(
                    "refuses to {action} `{name}` ({text}), because another request is in progress"
                ));
            }
            (Error::Generic { .. }, None | Some(408 | 425 | 429 | 500..))
                if !is_of_the_address(text) =>
            {
                let advice = self.connection_advice(text);
                return self.unreachable(format!(
                    "cannot be reached to {action} `{name}` ({text}); check the network and the endpoint ({endpoint}){advice}"
                ));
            }
            _ => format!("{url} refuses to {action} `{name}` ({text}); {variables}"),
        };
        BucketError::Refused(refused)
    }

    /// Returns more advice about a store that cannot be reached.
    fn connection_advice(&self, text: &str) -> String {
        let roles = match self.has_credentials {
            true => "",
            false => self.advice().without_credentials,
        };
        // TLS uses the system's certificate authorities, or the file in this variable.
        let authority = match text.contains("UnknownIssuer") {
            true => "; name your own certificate authority in SSL_CERT_FILE",
            false => "",
        };
        format!("{roles}{authority}")
    }

    fn advice(&self) -> Advice {
        match self.kind {
            StoreKind::S3 => Advice {
                endpoint: "AWS_ENDPOINT_URL, AWS_REGION",
                variables: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL (an \
                            endpoint with http:// needs AWS_ALLOW_HTTP=true)",
                without_credentials: "; the environment holds no credentials, so this machine's role is used: if it \
                                      has none, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (files such as \
                                      ~/.aws/credentials are not read)",
                // Without s3:ListBucket, S3 responds 403 instead of 404 for a missing object.
                permissions: "s3:GetObject below the prefix and s3:ListBucket, and for publishers s3:PutObject below the \
                              prefix and s3:DeleteObject there",
            },
            StoreKind::Google => Advice {
                endpoint: "GOOGLE_BASE_URL",
                variables: "check GOOGLE_APPLICATION_CREDENTIALS",
                without_credentials: "; the environment holds no credentials, so this machine's role is used: if it \
                                      has none, set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account",
                permissions: "storage.objects.get and storage.objects.list, and for publishers storage.objects.create \
                              and storage.objects.delete, to overwrite",
            },
            StoreKind::Azure => Advice {
                endpoint: "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ENDPOINT",
                variables: "check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
                without_credentials: "; the environment holds no credentials, so this machine's identity is used: if \
                                      it has none, set AZURE_STORAGE_ACCOUNT_KEY",
                permissions: "`Storage Blob Data Reader`, and for publishers `Storage Blob Data Contributor`",
            },
        }
    }
}

impl Failure {
    /// Takes the innermost cause. The outer ones only add the URL and the number of attempts.
    fn of(error: &Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let message = cause.to_string();
        let status = message
            .split_once("status code: ")
            .and_then(|(_, rest)| rest.get(..3)?.parse().ok());
        let element = |name: &str| {
            let rest = message.split_once(&format!("<{name}>"))?.1;
            let text = rest.split_once(&format!("</{name}>"))?.0;
            Some(text.to_owned())
        };
        let code = element("Code").unwrap_or_default();
        let text = match (status, element("Message")) {
            (Some(status), Some(message)) => format!("{status} {code}: {message}"),
            (Some(status), None) if !code.is_empty() => format!("{status} {code}"),
            _ => message
                .split_once("status code: ")
                .map_or(message.as_str(), |(_, rest)| rest)
                .to_owned(),
        };
        let text: String = text
            .split_whitespace()
            .joined(" ")
            .chars()
            .take(300)
            .collect();
        Failure {
            status,
            code,
            text: text.trim_end_matches([':', ' ']).to_owned(),
        }
    }

    fn is_of_the_bucket(&self) -> bool {
        // The message is Google's; the codes are those of S3 and Azure.
        matches!(self.code.as_str(), "NoSuchBucket" | "ContainerNotFound")
            || self.text.contains("The specified bucket does not exist")
    }
}

/// Whether no request was sent, because the address is invalid.
fn is_of_the_address(text: &str) -> bool {
    text.contains("scheme is not allowed") || text.contains("URL scheme")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapper(kind: StoreKind) -> ErrorMapper {
        ErrorMapper {
            url: "s3://feed/x".to_owned(),
            bucket: "feed".to_owned(),
            kind,
            has_credentials: true,
        }
    }

    fn generic(text: impl Into<String>) -> Error {
        Error::Generic {
            store: "test",
            source: text.into().into(),
        }
    }

    fn not_found(text: &str) -> Error {
        Error::NotFound {
            path: "x/log/1".to_owned(),
            source: text.into(),
        }
    }

    #[test]
    fn only_temporary_statuses_are_retried() {
        let temporary = [408, 409, 425, 429, 500, 502, 503, 504, 599];
        let permanent = [
            300, 301, 307, 308, 400, 402, 405, 407, 410, 411, 422, 424, 426, 428, 430, 431, 499,
            501,
        ];
        let cases = temporary.map(|status| (status, true)).into_iter();
        let cases = cases.chain(permanent.map(|status| (status, false)));
        for (status, expected) in cases {
            let error = generic(format!(
                "request failed with status code: {status}: <Code>Some</Code>"
            ));
            let mapped = mapper(StoreKind::S3).map(Action::Create, "log/1", &error);
            assert_eq!(mapped.is_transient(), expected, "{status}: {mapped}");
        }
        let cases = [
            ("connection reset", true),
            ("URL scheme is not allowed", false),
            ("UnknownIssuer", true),
        ];
        for (text, expected) in cases {
            let mapped = mapper(StoreKind::S3).map(Action::Read, "log/1", &generic(text));
            assert_eq!(mapped.is_transient(), expected, "{text}: {mapped}");
        }
        let authority = mapper(StoreKind::S3)
            .map(Action::Read, "log/1", &generic("UnknownIssuer"))
            .to_string();
        assert!(authority.contains("SSL_CERT_FILE"), "{authority}");
    }

    #[test]
    fn a_missing_bucket_is_no_missing_object() {
        for (text, is_absent) in cases![
            "status code: 404 <Code>NoSuchKey</Code>", true;
            "no such file", true;
            "status code: 404 <Code>NoSuchBucket</Code>", false;
            "status code: 404 <Code>ContainerNotFound</Code>", false;
            "status code: 404: The specified bucket does not exist.", false;
        ] {
            let error = not_found(text);
            assert_eq!(mapper(StoreKind::S3).is_absent(&error), is_absent, "{text}");
            let mapped = mapper(StoreKind::S3).map(Action::Read, "log/1", &error);
            assert!(
                matches!(&mapped, BucketError::Refused(text) if text.contains("no bucket `feed`")),
                "{mapped}"
            );
        }
        assert!(
            !mapper(StoreKind::S3).is_absent(&generic("status code: 404 <Code>NoSuchKey</Code>"))
        );
    }

    #[test]
    fn the_innermost_cause_is_one_short_line() {
        let failure = Failure::of(&generic(
            "status code: 403\n<Code>Denied</Code>  <Message>not\n you</Message>",
        ));
        let expected = (Some(403), "Denied");
        assert_eq!((failure.status, failure.code.as_str()), expected);
        assert_eq!(failure.text, "403 Denied: not you");
        assert_eq!(Failure::of(&generic("status code: 503: ")).text, "503");
        assert_eq!(Failure::of(&generic("x".repeat(1000))).text.len(), 300);
    }

    #[test]
    fn each_store_names_its_permissions() {
        let cases = cases![
            StoreKind::S3, Action::Delete, "s3:DeleteObject";
            StoreKind::S3, Action::List, "s3:ListBucket";
            StoreKind::Google, Action::Create, "storage.objects.create";
            StoreKind::Google, Action::Write, "storage.objects.delete, to overwrite";
            StoreKind::Azure, Action::Read, "Reader";
            StoreKind::Azure, Action::List, "Reader";
            StoreKind::Azure, Action::Create, "Contributor";
            StoreKind::Azure, Action::Delete, "Contributor";
        ];
        for (kind, action, expected) in cases {
            let source = "status code: 403".into();
            let error = Error::PermissionDenied {
                path: "x".to_owned(),
                source,
            };
            let mapped = mapper(kind).map(action, "log/1", &error);
            assert!(
                matches!(&mapped, BucketError::Refused(text) if text.contains(expected)),
                "{kind:?}: {mapped}"
            );
        }
    }
}
