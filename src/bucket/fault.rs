//! What a store's errors mean: whether they may pass, and what to do.

use object_store::Error;

use super::error::BucketError;
use super::url::{BucketUrl, Kind};

/// What was asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Create,
    Write,
    List,
    Delete,
}

/// Puts errors of a bucket into words.
#[derive(Debug)]
pub(super) struct Teller {
    url: String,
    bucket: String,
    kind: Kind,
    has_credentials: bool,
}

/// What is known of a request that failed.
struct Failure {
    /// The status that the store answered with.
    status: Option<u16>,
    /// The store's own code, such as `NoSuchBucket`.
    code: String,
    /// The cause in one line.
    text: String,
}

impl Teller {
    pub(super) fn new(url: &BucketUrl, kind: Kind, bucket: &str, has_credentials: bool) -> Teller {
        Teller { url: url.to_string(), bucket: bucket.to_owned(), kind, has_credentials }
    }

    /// What the environment says cannot be used.
    pub(super) fn configuration(&self, error: &Error) -> BucketError {
        BucketError::Refused(format!("{} cannot be used: {}; {}", self.url, Failure::of(error).text, self.variables()))
    }

    /// A request took too long.
    pub(super) fn late(&self, action: Action, name: &str) -> BucketError {
        BucketError::Unreachable(format!("{} did not {} `{name}` in time; check the network", self.url, action.verb()))
    }

    /// An object came in part.
    pub(super) fn broken(&self, name: &str, detail: String) -> BucketError {
        BucketError::Unreachable(format!("{} did not send `{name}` whole ({detail}); check the network", self.url))
    }

    /// Whether an error says that there is no such object, in a bucket that exists.
    pub(super) fn is_absent(&self, error: &Error) -> bool {
        matches!(error, Error::NotFound { .. }) && !Failure::of(error).is_of_the_bucket()
    }

    /// What an error means.
    pub(super) fn tell(&self, action: Action, name: &str, error: &Error) -> BucketError {
        let failure = Failure::of(error);
        let Teller { url, bucket, .. } = self;
        let (verb, text) = (action.verb(), &failure.text);
        let endpoint = self.endpoint();
        let refused = match (error, failure.status) {
            _ if failure.is_of_the_bucket() || matches!(error, Error::NotFound { .. }) => {
                format!(
                    "there is no bucket `{bucket}` ({text}); create it, or check the URL and the endpoint ({endpoint})"
                )
            }
            (Error::NotImplemented { .. } | Error::NotSupported { .. }, _) | (_, Some(501)) => format!(
                "{url} cannot {verb} `{name}` ({text}); use a store that keeps conditional puts, and leave \
                 AWS_CONDITIONAL_PUT unset"
            ),
            (_, Some(300..400)) => format!("{url} is in another place ({text}); check the endpoint ({endpoint})"),
            _ if text.contains("without LOCATION") || failure.code == "AuthorizationHeaderMalformed" => {
                format!("{url} is in another region ({text}); set AWS_REGION to the bucket's")
            }
            _ if failure.code == "RequestTimeTooSkewed" => {
                format!("{url} finds this machine's clock wrong ({text}); set the clock")
            }
            (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }, _) => format!(
                "{url} refuses to {verb} `{name}` ({text}); {}, and that they permit {}",
                self.variables(),
                self.permission(action)
            ),
            // A create that meets such an answer is asked for again by its caller.
            (Error::AlreadyExists { .. } | Error::Precondition { .. }, _) | (_, Some(409)) => {
                return BucketError::Unreachable(format!(
                    "{url} turns away the request to {verb} `{name}` ({text}); another one was under way"
                ));
            }
            (Error::Generic { .. }, None | Some(408 | 425 | 429 | 500..)) if !is_of_the_address(text) => {
                let roles =
                    if self.has_credentials { String::new() } else { format!("; {}", self.without_credentials()) };
                // The system's authorities are asked, or others that a variable names.
                let authority = if text.contains("UnknownIssuer") {
                    "; an authority of your own is named by SSL_CERT_FILE"
                } else {
                    ""
                };
                return BucketError::Unreachable(format!(
                    "{url} cannot be reached to {verb} `{name}` ({text}); check the network and the endpoint \
                     ({endpoint}){roles}{authority}"
                ));
            }
            _ => format!("{url} refuses to {verb} `{name}` ({text}); {}", self.variables()),
        };
        BucketError::Refused(refused)
    }

    /// The variables that name the place of the store.
    fn endpoint(&self) -> &'static str {
        match self.kind {
            Kind::S3 => "AWS_ENDPOINT_URL, AWS_REGION",
            Kind::Google => "GOOGLE_BASE_URL",
            Kind::Azure => "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ENDPOINT",
        }
    }

    /// The variables that hold credentials.
    fn variables(&self) -> &'static str {
        match self.kind {
            Kind::S3 => {
                "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL (an endpoint with http:// \
                 needs AWS_ALLOW_HTTP=true)"
            }
            Kind::Google => "check GOOGLE_APPLICATION_CREDENTIALS",
            Kind::Azure => "check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        }
    }

    fn without_credentials(&self) -> &'static str {
        match self.kind {
            Kind::S3 => {
                "the environment holds no credentials, so this machine's role is asked for some: if it has none, set \
                 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (files such as ~/.aws/credentials are not read)"
            }
            Kind::Google => {
                "the environment holds no credentials, so this machine's role is asked for some: if it has none, set \
                 GOOGLE_APPLICATION_CREDENTIALS to the file of a service account"
            }
            Kind::Azure => {
                "the environment holds no credentials, so this machine's identity is asked for some: if it has none, set \
                 AZURE_STORAGE_ACCOUNT_KEY"
            }
        }
    }

    fn permission(&self, action: Action) -> &'static str {
        match (self.kind, action) {
            // Without the second, S3 refuses to say of a name that there is nothing.
            (Kind::S3, Action::Read) => "s3:GetObject below the prefix and s3:ListBucket",
            (Kind::S3, Action::Create | Action::Write) => "s3:PutObject below the prefix",
            (Kind::S3, Action::List) => "s3:ListBucket",
            (Kind::S3, Action::Delete) => "s3:DeleteObject below the prefix",
            (Kind::Google, Action::Read) => "storage.objects.get and storage.objects.list",
            (Kind::Google, Action::Create) => "storage.objects.create",
            (Kind::Google, Action::Write) => "storage.objects.create and storage.objects.delete, to overwrite",
            (Kind::Google, Action::List) => "storage.objects.list",
            (Kind::Google, Action::Delete) => "storage.objects.delete",
            (Kind::Azure, Action::Read | Action::List) => "`Storage Blob Data Reader`",
            (Kind::Azure, _) => "`Storage Blob Data Contributor`",
        }
    }
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Create => "create",
            Action::Write => "write",
            Action::List => "list",
            Action::Delete => "delete",
        }
    }
}

impl Failure {
    /// The innermost cause: what stands around it tells how often was tried, and the request's URL.
    fn of(error: &Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let told = cause.to_string();
        let status = told.split_once("status code: ").and_then(|(_, rest)| rest.get(..3)?.parse().ok());
        let element = |name: &str| {
            let (_, rest) = told.split_once(&format!("<{name}>"))?;
            let (text, _) = rest.split_once(&format!("</{name}>"))?;
            Some(text.to_owned())
        };
        let code = element("Code").unwrap_or_default();
        let text = match (status, element("Message")) {
            (Some(status), Some(message)) => format!("{status} {code}: {message}"),
            (Some(status), None) if !code.is_empty() => format!("{status} {code}"),
            (Some(_), None) => told.split_once("status code: ").map_or_else(String::new, |(_, rest)| rest.to_owned()),
            (None, _) => told,
        };
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
        Failure { status, code, text: text.trim_end_matches([':', ' ']).to_owned() }
    }

    fn is_of_the_bucket(&self) -> bool {
        // Google's message; the codes are those of S3 and Azure.
        matches!(self.code.as_str(), "NoSuchBucket" | "ContainerNotFound")
            || self.text.contains("The specified bucket does not exist")
    }
}

/// Whether a request was never sent, since its address cannot be one.
fn is_of_the_address(text: &str) -> bool {
    text.contains("scheme is not allowed") || text.contains("URL scheme")
}
