//! A bucket of S3's kind, by the crate `object_store`: where backups are kept, and where Thanos and Mimir
//! keep their blocks.
//!
//! Plain calls for plain code: a runtime of its own waits inside, whichever thread asks.
//! Invariant: no secret is in a name, an error or a message.

use super::client::without_logins;
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::{ArgMatches, Command};
use cli::arguments::option;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore as _};
use object_store::path::{Error as PathError, Path as ObjectPath};
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _,
    RetryConfig,
};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::crypto::ring;

/// Tries of a request after the first, while the store is away, busy or slow.
const RETRIES_MAX: usize = 6;
/// Before the second try; later pauses are longer.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// No other try begins after that.
const RETRY_TIMEOUT: Duration = Duration::from_secs(180);
/// A request, with up to 8 MiB, on a slow line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Small objects that are asked for at the same time.
const AT_ONCE: usize = 16;
/// Names of a piece of a list.
const NAMES_AT_ONCE: usize = 1000;
/// Names of a folder that are no path; each takes some requests.
const ODD_MAX: usize = 100;
/// Bytes of a file of credentials.
const CREDENTIALS_SIZE_MAX: u64 = 1 << 20;
/// Variables of the environment that a file of credentials stands for.
const CREDENTIALS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Adds the arguments that only buckets have.
pub fn arguments(command: Command) -> Command {
    command
        .arg(option(
            "credentials-file",
            "PATH",
            "For s3: a file as ~/.aws/credentials, of which the profile $AWS_PROFILE or `default` \
             counts; without it AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ))
        .arg(option("endpoint", "URL", "For s3: the server; else AWS_ENDPOINT_URL, or Amazon's"))
        .arg(option("region", "NAME", "For s3: the region; else AWS_REGION, or us-east-1"))
}

/// What is done in a bucket, and so which rights that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Objects are listed and read.
    Read,
    /// They are put and removed, too.
    Write,
}

/// An object that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name below the prefix.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// When it was put, in nanoseconds since 1970 by the clock of the store.
    pub modified: i64,
}

/// What stands in a folder itself.
#[derive(Debug, Default)]
pub struct Level {
    /// Its objects.
    pub objects: Vec<Found>,
    /// The names of the folders in it.
    pub folders: BTreeSet<String>,
    /// Objects and folders whose names are no path, as `s3://bucket/a//`: nothing of them can be had.
    pub odd: BTreeSet<String>,
}

/// Why a bucket did not give what it was asked for.
#[derive(Debug)]
pub struct Failed {
    /// In words.
    pub error: anyhow::Error,
    /// Whether the object is what is wrong: it is not there, or shorter than what was asked of it.
    pub is_of_object: bool,
}

/// Bytes that are under way.
pub struct Coming {
    handle: JoinHandle<Result<Bytes, Error>>,
    key: String,
    range: Range<u64>,
}

impl Coming {
    /// Which bytes of their object.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }
}

/// The bucket.
pub struct Bucket {
    store: AmazonS3,
    runtime: Runtime,
    bucket: String,
    prefix: String,
    name: String,
    rights: Rights,
}

impl Bucket {
    /// The bucket and prefix of `s3://` and `rest`, which people wrote behind `said`; nothing is asked of
    /// it yet.
    ///
    /// # Errors
    /// When the arguments, the environment or the file of credentials cannot be used.
    pub fn open(
        matches: &ArgMatches,
        said: &str,
        rest: &str,
        rights: Rights,
    ) -> anyhow::Result<Bucket> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!bucket.is_empty(), "{said}s3://{rest}: say s3://BUCKET/PREFIX");
        let prefix = prefix.trim_matches('/').to_owned();
        let path = ObjectPath::parse(&prefix);
        path.with_context(|| format!("{said}s3://{rest}: {prefix} can be no prefix"))?;
        let file = said_of(matches, "credentials-file").map(Path::new);
        let replaced = if file.is_some() { &CREDENTIALS[..] } else { &[] };
        let mut builder = of_environment(replaced).with_bucket_name(bucket);
        if let Some(file) = file {
            builder = with_file(builder, file)?;
        }
        ensure!(
            is_with_credentials(&builder),
            "{said}s3://{rest}: no credentials: say --credentials-file, or set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY"
        );
        if let Some(region) = said_of(matches, "region") {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = said_of(matches, "endpoint") {
            builder = builder.with_endpoint(endpoint);
        }
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint).unwrap_or_default();
        let authority = endpoint.split_once("://").map_or("", |(_, rest)| rest);
        ensure!(
            !authority.split('/').next().unwrap_or_default().contains('@'),
            "--endpoint {}: a user or a password in a URL is shown to others: say --credentials-file",
            without_logins(&endpoint)
        );
        // Who says http means it.
        let is_plain = endpoint.starts_with("http://");
        let options = ClientOptions::new().with_timeout(REQUEST_TIMEOUT).with_allow_http(is_plain);
        let retry = RetryConfig {
            backoff: BackoffConfig { init_backoff: PAUSE_MIN, ..BackoffConfig::default() },
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
        };
        // Asked for by reqwest, which is built without ciphers of its own; a second call changes nothing.
        let _ = ring::default_provider().install_default();
        let store = builder.with_client_options(options).with_retry(retry).build();
        Ok(Bucket {
            store: store.map_err(|error| anyhow::anyhow!("{said}s3://{rest}: {error}"))?,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
            bucket: bucket.to_owned(),
            name: format!("s3://{}", rest.trim_end_matches('/')),
            prefix,
            rights,
        })
    }

    /// What a person calls it, without secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, key: &str) -> ObjectPath {
        path_of(&self.prefix, key)
    }

    /// A name of this place from one of the bucket.
    fn found(&self, found: &ObjectMeta) -> Option<Found> {
        let path = found.location.as_ref();
        let key = match self.prefix.as_str() {
            "" => path,
            prefix => path.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        let modified = found.last_modified.timestamp_nanos_opt()?;
        Some(Found { key: key.to_owned(), size: found.size, modified })
    }

    /// What went wrong, and what may be done about it.
    fn failed(&self, key: &str, error: &Error) -> anyhow::Error {
        let (said, name) = (with_causes(error), &self.name);
        // Of a list the crate tells no more than the status.
        let is_denied =
            matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
                || said.contains("403 Forbidden");
        if said.contains("NoSuchBucket") {
            return anyhow::anyhow!("there is no bucket {}: make it, or say another", self.bucket);
        }
        if is_denied {
            let to_write = match self.rights {
                Rights::Read => "",
                Rights::Write => ", to write s3:PutObject and s3:DeleteObject",
            };
            return anyhow::anyhow!(
                "{name}/{key}: denied: these credentials need s3:ListBucket on the bucket and \
                 s3:GetObject{to_write} below the prefix ({said})"
            );
        }
        if matches!(error, Error::InvalidPath { .. }) {
            return OddKey(format!("{name}/{key}: {said}")).into();
        }
        anyhow::anyhow!("{name}/{key}: {said}")
    }
}

/// That something below a folder is called as no object of ours is, as `a//b`: then nothing of a list can be
/// had.
#[derive(Debug)]
pub struct OddKey(String);

impl fmt::Display for OddKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OddKey {}

/// A name below a prefix. As it stands: the crate's other way would give signs as `~` and `%` names of its
/// own.
fn path_of(prefix: &str, key: &str) -> ObjectPath {
    let whole = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}/{key}") };
    ObjectPath::parse(&whole).unwrap_or_else(|_| ObjectPath::from(whole))
}

/// The text of an argument.
fn said_of<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// Whether it is said who asks. Nobody else is asked for that, as a cloud's address for metadata.
fn is_with_credentials(builder: &AmazonS3Builder) -> bool {
    use AmazonS3ConfigKey::{
        AccessKeyId, ContainerCredentialsFullUri, ContainerCredentialsRelativeUri, SecretAccessKey,
        WebIdentityTokenFile,
    };
    let is_said = |key: &AmazonS3ConfigKey| builder.get_config_value(key).is_some();
    let of_roles =
        [WebIdentityTokenFile, ContainerCredentialsFullUri, ContainerCredentialsRelativeUri];
    [AccessKeyId, SecretAccessKey].iter().all(is_said) || of_roles.iter().any(is_said)
}

/// What an error says, and what its causes say that it does not.
fn with_causes(error: &Error) -> String {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        cause = inner.source();
    }
    said
}

/// What the environment says, without some of its variables.
fn of_environment(leave_out: &[&str]) -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in std::env::vars() {
        let is_replaced = leave_out.contains(&name.as_str());
        if !name.starts_with("AWS_") || is_replaced || value.is_empty() {
            continue;
        }
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

fn with_file(mut builder: AmazonS3Builder, file: &Path) -> anyhow::Result<AmazonS3Builder> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| shown.to_string())?.len();
    ensure!(size <= CREDENTIALS_SIZE_MAX, "{shown} is too large for a file of credentials");
    let text = std::fs::read_to_string(file).with_context(|| shown.to_string())?;
    let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    let found = profile_in(&text, &profile);
    for name in &CREDENTIALS[..2] {
        if !found.contains_key(name.to_ascii_lowercase().as_str()) {
            bail!("{shown}: the profile {profile} has no {}", name.to_ascii_lowercase());
        }
    }
    for (name, value) in found {
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(builder)
}

/// The credentials of a profile: `[profile]`, then lines `name = value`. Lines before the first profile
/// are the default one's.
fn profile_in(text: &str, profile: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut section = "default".to_owned();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim().to_owned();
        } else if section == profile
            && !line.starts_with(['#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            let name = name.trim().to_ascii_lowercase();
            if CREDENTIALS.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                found.insert(name, value.trim().to_owned());
            }
        }
    }
    found
}

impl Bucket {
    /// Puts bytes under a name, in place of what was there.
    ///
    /// # Errors
    /// When they are not there for sure.
    pub fn put(&self, key: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let payload = Bytes::copy_from_slice(bytes).into();
        let put = self.runtime.block_on(self.store.put(&self.path(key), payload));
        put.map(|_| ()).map_err(|error| self.failed(key, &error))
    }

    /// The bytes under a name, if there are any; not more than one over `size_max` of them.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn get(&self, key: &str, size_max: u64) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.path(key);
        let got = self.runtime.block_on(async {
            let found = self.store.get(&path).await?;
            if found.meta.size <= size_max {
                return found.bytes().await;
            }
            drop(found);
            self.store.get_range(&path, 0..size_max.saturating_add(1)).await
        });
        match got {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if is_not_there(&error) => Ok(None),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    /// Begins to fetch bytes of an object; what is under way is in memory, so it should not be much.
    pub fn fetch(&self, key: &str, range: Range<u64>) -> Coming {
        let (store, path, asked) = (self.store.clone(), self.path(key), range.clone());
        // What breaks off in the middle of an answer is asked for again by the crate.
        let handle = self.runtime.spawn(async move { store.get_range(&path, asked).await });
        Coming { handle, key: key.to_owned(), range }
    }

    /// Waits for bytes that are under way.
    ///
    /// # Errors
    /// When they do not come, or fewer than were asked for.
    pub fn wait(&self, coming: Coming) -> Result<Bytes, Failed> {
        let Coming { handle, key, range } = coming;
        let got = match self.runtime.block_on(handle) {
            Ok(got) => got,
            Err(error) => {
                let error = anyhow::anyhow!("{}/{key}: {error}", self.name);
                return Err(Failed { error, is_of_object: false });
            }
        };
        match got {
            Ok(bytes) if bytes.len() as u64 == range.end - range.start => Ok(bytes),
            Ok(bytes) => {
                let end = range.start + bytes.len() as u64;
                let name = &self.name;
                let error = anyhow::anyhow!("{name}/{key}: it ends at {end}, not at {}", range.end);
                Err(Failed { error, is_of_object: true })
            }
            Err(error) => {
                let is_beyond = with_causes(&error).contains("416");
                let is_of_object = is_beyond || is_not_there(&error);
                Err(Failed { error: self.failed(&key, &error), is_of_object })
            }
        }
    }

    /// Everything below a folder, or below the prefix if that is nothing, one after the other.
    ///
    /// # Errors
    /// When it cannot be listed whole, or `on_found` fails.
    pub fn list(
        &self,
        folder: &str,
        on_found: &mut dyn FnMut(Found) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.path(folder);
        self.runtime.block_on(async {
            let mut all = self.store.list(Some(&path));
            while let Some(found) = all.next().await {
                let found = found.map_err(|error| self.failed(folder, &error))?;
                if let Some(found) = self.found(&found) {
                    on_found(found)?;
                }
            }
            Ok(())
        })
    }

    /// What stands in a folder itself.
    ///
    /// # Errors
    /// When it cannot be listed whole.
    pub fn level(&self, folder: &str) -> anyhow::Result<Level> {
        let path = self.path(folder);
        let prefix = (!path.as_ref().is_empty()).then(|| format!("{path}/"));
        let mut level = Level::default();
        let mut asked = PaginatedListOptions {
            delimiter: Some("/".into()),
            max_keys: Some(NAMES_AT_ONCE),
            ..PaginatedListOptions::default()
        };
        loop {
            let count = asked.max_keys.unwrap_or(NAMES_AT_ONCE);
            let page = self.store.list_paginated(prefix.as_deref(), asked.clone());
            match self.runtime.block_on(page) {
                Ok(page) => {
                    asked.page_token = level.add(self, page);
                    if asked.page_token.is_none() {
                        return Ok(level);
                    }
                    asked.max_keys = Some((2 * count).min(NAMES_AT_ONCE));
                }
                Err(error) => {
                    let odd = odd_name(&error).map(str::to_owned);
                    let odd = odd.ok_or_else(|| self.failed(folder, &error))?;
                    // Of its piece nothing is told: what is before it comes in smaller ones.
                    if 1 < count {
                        asked.max_keys = Some(count / 2);
                        continue;
                    }
                    (asked.offset, asked.page_token) = (Some(behind(&odd)), None);
                    // A store that does not go on behind a name would give it for ever.
                    let shown = format!("s3://{}/{odd}", self.bucket);
                    if !level.odd.insert(shown) || ODD_MAX < level.odd.len() {
                        return Err(self.failed(folder, &error));
                    }
                }
            }
        }
    }

    /// Gets many small objects, some at a time, in their order; as [`Bucket::get`] of each.
    ///
    /// # Errors
    /// The first one of them.
    pub fn get_all(&self, keys: &[String], size_max: u64) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
        let get = |key: &String| {
            let (path, key) = (self.path(key), key.clone());
            async move {
                let got = match self.store.get(&path).await {
                    Ok(found) if size_max < found.meta.size => {
                        bail!("{}/{key}: {} bytes are too many", self.name, found.meta.size)
                    }
                    Ok(found) => found.bytes().await,
                    Err(error) => Err(error),
                };
                match got {
                    Ok(bytes) => Ok(Some(bytes.to_vec())),
                    Err(error) if is_not_there(&error) => Ok(None),
                    Err(error) => Err(self.failed(&key, &error)),
                }
            }
        };
        let all: Vec<_> = keys.iter().map(get).collect();
        self.runtime.block_on(futures::stream::iter(all).buffered(AT_ONCE).try_collect())
    }

    /// Takes a name away; that it is gone already is fine.
    ///
    /// # Errors
    /// When it may be there still.
    pub fn remove(&self, key: &str) -> anyhow::Result<()> {
        match self.runtime.block_on(self.store.delete(&self.path(key))) {
            Err(error) if !matches!(error, Error::NotFound { .. }) => Err(self.failed(key, &error)),
            _ => Ok(()),
        }
    }
}

impl Level {
    /// Adds a piece; returns where the next one begins.
    fn add(&mut self, bucket: &Bucket, page: PaginatedListResult) -> Option<String> {
        let name = |path: &ObjectPath| path.filename().map(str::to_owned);
        self.folders.extend(page.result.common_prefixes.iter().filter_map(name));
        self.objects.extend(page.result.objects.iter().filter_map(|found| bucket.found(found)));
        page.page_token
    }
}

/// The name that an error says is no path.
fn odd_name(error: &Error) -> Option<&str> {
    match error {
        Error::InvalidPath {
            source: PathError::EmptySegment { path } | PathError::BadSegment { path, .. },
        } => Some(path),
        _ => None,
    }
}

/// Where a list goes on behind a name; behind all that is below it, where that is a folder.
fn behind(name: &str) -> String {
    match name.ends_with('/') {
        true => format!("{name}{}", char::MAX),
        false => name.to_owned(),
    }
}

/// Whether an object is not there, in a bucket that is.
fn is_not_there(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if !source.to_string().contains("NoSuchBucket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "aws_access_key_id = plain\n\
                        [default]\n\
                        # aws_session_token = no\n\
                        aws_access_key_id=first\n aws_secret_access_key = with=sign \n\
                        region = ignored\n\
                        [ other ]\n\
                        AWS_ACCESS_KEY_ID = second\n";

    #[test]
    fn names_stand_as_they_are() {
        for (prefix, key, path) in [
            ("a~b*c%41", "01/meta.json", "a~b*c%41/01/meta.json"),
            ("a b", "", "a b"),
            ("", "x/y", "x/y"),
            ("", "", ""),
        ] {
            assert_eq!(path_of(prefix, key).as_ref(), path);
        }
    }

    #[test]
    fn a_list_goes_on_behind_what_is_no_path() {
        let source = ObjectPath::parse("a//").expect_err("no path");
        assert_eq!(odd_name(&Error::InvalidPath { source }), Some("a//"));
        let source = ObjectPath::parse("a/./").expect_err("no path");
        assert_eq!(odd_name(&Error::InvalidPath { source }), Some("a/./"));
        for below in ["a//b", "a//z/z", "a//\u{fffd}"] {
            assert!(below < behind("a//").as_str(), "{below}");
        }
        assert!(behind("a//").as_str() < "a/0");
        assert_eq!(behind("a/b"), "a/b");
    }

    #[test]
    fn profiles_are_kept_apart() {
        let of = |profile| {
            let mut found: Vec<_> = profile_in(FILE, profile).into_iter().collect();
            found.sort();
            found
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let id = "aws_access_key_id";
        assert_eq!(of("default"), [pair(id, "first"), pair("aws_secret_access_key", "with=sign")]);
        assert_eq!(of("other"), [pair(id, "second")]);
        assert_eq!(of("none"), []);
    }

    #[test]
    fn what_a_file_lacks_is_said_and_nothing_of_what_it_has() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("credentials");
        std::fs::write(&file, "[default]\naws_access_key_id = hidden\n").expect("written");
        let error = with_file(AmazonS3Builder::new(), &file).expect_err("refused").to_string();
        assert!(error.ends_with("the profile default has no aws_secret_access_key"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
    }
}
