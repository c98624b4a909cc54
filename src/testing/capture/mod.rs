//! Captured requests: files that people can read and edit, with pseudonyms in place of personal data.

mod json;
mod name;
mod permutation;
mod pseudonyms;
mod text;
mod timestamp;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

#[cfg(feature = "dashboard")]
pub(crate) use pseudonyms::MAX_BODY;
pub use pseudonyms::Pseudonyms;

use crate::tasks_and_errors::random::random;

/// A captured request. Its file contains the request line, the headers, an empty line, and the body.
///
/// [`Pseudonyms`] makes a capture from a request, [`Endpoint::captures`](crate::Endpoint::captures) makes captures from
/// kept deliveries, and [`TestDelivery::from_capture`](super::TestDelivery::from_capture) makes a test delivery from a
/// capture file.
///
/// ```
/// use idempotent_webhook::testing::Capture;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let capture = Capture::parse(b"POST /webhooks/github HTTP/1.1\nX-GitHub-Event: push\n\n{}")?;
/// assert_eq!(capture.uri(), "/webhooks/github");
/// assert_eq!(capture.into_request().headers()["x-github-event"], "push");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Capture {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    provider: Option<String>,
    remark: Option<String>,
    event_type: Option<String>,
    replaced: Vec<String>,
    unmatched: Vec<String>,
}

/// The reason why there is no capture.
#[derive(Clone, Debug)]
pub struct CaptureError(String);

impl CaptureError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CaptureError {}

/// The start of the line that names the provider of a capture. It stands before the request line. `webhook replay`
/// signs the request again for this provider. No HTTP request starts with such a line, so a sender cannot add it to a
/// request that somebody saves as it was received.
const RECORDED: &str = "# recorded for ";

/// The largest number of files with the same name and different numbers.
const MAX_FILES: usize = 10_000;

/// Headers that are not sent again: headers of the original connection, and headers that the HTTP client writes itself.
const NOT_SENT: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Capture {
    /// Parses the bytes of a capture file. Lines end with LF or CRLF, and the body is everything after the empty line,
    /// byte for byte.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] if the text is not a captured request.
    pub fn parse(text: &[u8]) -> Result<Self, CaptureError> {
        Self::parsed(text).map_err(|reason| CaptureError(format!("no captured request: {reason}")))
    }

    fn parsed(text: &[u8]) -> Result<Self, String> {
        let mut rest = text;
        let mut first = line(&mut rest).ok_or("it is empty")?;
        let provider = first.strip_prefix(RECORDED.as_bytes());
        let provider = provider.map(|name| String::from_utf8_lossy(name).into_owned());
        if provider.is_some() {
            first = line(&mut rest).ok_or("its request line is missing")?;
        }
        let (method, uri) = request_line(first)
            .ok_or("its first line is not a request line, such as POST /webhooks HTTP/1.1")?;
        let mut headers = HeaderMap::new();
        for number in 2 + usize::from(provider.is_some()).. {
            match line(&mut rest) {
                None => return Err("the empty line after the headers is missing".to_owned()),
                Some(b"") => break,
                Some(line) => {
                    let (name, value) =
                        header(line).ok_or_else(|| format!("line {number} is not a header"))?;
                    headers.append(name, value);
                }
            }
        }
        if let (Some(authority), false) = (uri.authority(), headers.contains_key(HOST)) {
            let host =
                HeaderValue::try_from(authority.as_str()).map_err(|_| "its host is not valid")?;
            headers.insert(HOST, host);
        }
        let (body, remark) = cut(rest, headers.get(CONTENT_LENGTH));
        Ok(Self {
            method,
            uri,
            headers,
            body: Bytes::copy_from_slice(body),
            provider,
            remark,
            event_type: None,
            replaced: Vec::new(),
            unmatched: Vec::new(),
        })
    }

    /// The URI of the request: the path and the query, or the whole URL.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The provider, if [`Pseudonyms::capture`] has made this capture from a request. Such a capture has no signature
    /// until it is signed again. Its file names the provider before the request line: `# recorded for stripe`.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// How the length of the body differs from `Content-Length`, if it does.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// The places where [`Pseudonyms`] has replaced something, sorted: for example `$.data.object.email`,
    /// `$.items[].id`, `header x-id`, `query.token` or `path`. The list does not contain the values.
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// The names that you asked to [keep](Pseudonyms::keep) or [replace](Pseudonyms::replace), but that match no
    /// member, field or header of the request, sorted. If a name matches in none of your captures, it may be
    /// misspelled.
    pub fn unmatched(&self) -> &[String] {
        &self.unmatched
    }

    /// Writes the capture to a new file in this folder, and returns the path of the file. The folder is created if it
    /// is missing. The file is named after the event type in lower case: `invoice.paid.http`, or `invoice.paid-2.http`
    /// if that name is taken. While the capture is being written, the file may exist and be empty.
    ///
    /// # Errors
    ///
    /// Any file system error. After an error, there is no new file.
    pub fn write_to(&self, folder: impl AsRef<Path>) -> io::Result<PathBuf> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder)?;
        let name = self.file_name();
        let partial = folder.join(format!(".{name}-{:016x}.partial", random()));
        let written = File::create_new(&partial)
            .and_then(|mut file| file.write_all(&self.to_bytes()))
            .and_then(|()| take_name(&partial, folder, &name));
        if written.is_err() {
            // The first error already reports a problem with the folder.
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// The file name: the event type, with `_` in place of characters that a file system, or a command that takes the
    /// name as an argument, might not accept.
    fn file_name(&self) -> String {
        let event_type = self.event_type.as_deref().unwrap_or_default();
        let plain = |char: char| match char {
            'a'..='z' | '0'..='9' | '.' | '_' | '-' => char,
            _ => '_',
        };
        // In lower case, because some file systems treat `Invoice.Paid` and `invoice.paid` as the same name.
        let event_type = event_type.to_ascii_lowercase();
        let name: String = event_type.chars().take(100).map(plain).collect();
        match name.trim_matches('.') {
            "" => "capture".to_owned(),
            name if name.starts_with('-') || is_device(name) => format!("_{name}"),
            name => name.to_owned(),
        }
    }

    /// Returns the bytes of the capture file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut text = Vec::new();
        if let Some(provider) = &self.provider {
            text.extend_from_slice(format!("{RECORDED}{provider}\n").as_bytes());
        }
        text.extend_from_slice(format!("{} {path} HTTP/1.1\n", self.method).as_bytes());
        for (name, value) in &self.headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
        text.push(b'\n');
        text.extend_from_slice(&self.body);
        text
    }

    /// Returns the request to send again, without the headers that belong to the original connection.
    pub fn into_request(self) -> Request<Bytes> {
        let mut request = self.into_received();
        let headers = request.headers_mut();
        // The `Connection` header names further headers of the original connection.
        let named: Vec<HeaderName> = headers
            .get_all("connection")
            .into_iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
        for name in NOT_SENT {
            headers.remove(name);
        }
        request
    }

    /// Returns the request as the server received it, with all headers.
    pub fn into_received(self) -> Request<Bytes> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}

/// The text of the capture file, with replacement characters for bytes that are not UTF-8.
impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

/// Renames the written file to the first free name, and returns its path.
fn take_name(written: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    for number in 1..MAX_FILES {
        let file = folder.join(match number {
            1 => format!("{name}.http"),
            number => format!("{name}-{number}.http"),
        });
        // An empty file reserves the name, because `rename` alone could replace a file of another process.
        match File::create_new(&file) {
            Ok(_) => {
                let renamed = fs::rename(written, &file);
                if renamed.is_err() {
                    let _ = fs::remove_file(&file);
                }
                return renamed.map(|()| file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    let message = format!("{} has {MAX_FILES} files of {name}", folder.display());
    Err(io::Error::other(message))
}

/// Whether Windows would open a device instead of a file with this name. Windows ignores everything after the first
/// dot.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.to_ascii_lowercase();
    let is_port = |kind| {
        stem.strip_prefix(kind)
            .is_some_and(|port| port.len() == 1 && port.bytes().all(|digit| digit.is_ascii_digit()))
    };
    ["aux", "con", "nul", "prn"].contains(&&*stem) || is_port("com") || is_port("lpt")
}

/// The next line, without its line break.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn request_line(line: &[u8]) -> Option<(Method, Uri)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, uri) = (words.next()?, words.next()?);
    let is_http = words.next().is_none_or(|word| word.starts_with("HTTP/"));
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_http || !is_method || words.next().is_some() {
        return None;
    }
    let uri: Uri = uri.parse().ok()?;
    uri.path_and_query()?;
    Some((method.parse().ok()?, uri))
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..)?.trim_ascii();
    Some((
        HeaderName::from_bytes(name).ok()?,
        HeaderValue::from_bytes(value).ok()?,
    ))
}

/// The body, and how its length differs from the length that `Content-Length` announces, if it does. White space beyond
/// the announced length is left out, because an editor may have added it.
fn cut<'a>(rest: &'a [u8], announced: Option<&HeaderValue>) -> (&'a [u8], Option<String>) {
    let announced = announced
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    let (Some(announced), length) = (announced, rest.len()) else {
        return (rest, None);
    };
    match rest.split_at_checked(announced) {
        Some((body, b"")) => (body, None),
        Some((body, behind)) if behind.trim_ascii().is_empty() => {
            let remark =
                format!("white space after the {announced} bytes of Content-Length is left out");
            (body, Some(remark))
        }
        Some(_) | None => {
            let remark =
                format!("the body has {length} bytes, and Content-Length says {announced}");
            (rest, Some(remark))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf_or_crlf_and_the_body_is_the_exact_rest() -> Result<(), CaptureError> {
        for text in [
            &b"POST /a?b HTTP/1.1\r\nHost: c\r\nX-D:  e \r\n\r\n{\r\n}\n"[..],
            b"POST https://c/a?b HTTP/2\nX-D:e\n\n{\r\n}\n",
            b"POST /a?b\nhost: c\nx-d: e\n\n{\r\n}\n",
        ] {
            let request = Capture::parse(text)?.into_received();
            assert_eq!(request.method(), "POST");
            let path = request.uri().path_and_query();
            assert_eq!(path.map(|path| path.as_str()), Some("/a?b"));
            for (name, value) in [("host", "c"), ("x-d", "e")] {
                let found = request.headers().get(name);
                assert_eq!(found.map(HeaderValue::as_bytes), Some(value.as_bytes()));
            }
            assert_eq!(&**request.body(), b"{\r\n}\n");
        }
        Ok(())
    }

    #[test]
    fn the_provider_of_a_file_is_in_no_request() -> Result<(), CaptureError> {
        let text = b"# recorded for github\nPOST /a HTTP/1.1\na: b\n\n{}";
        let capture = Capture::parse(text)?;
        assert_eq!(capture.provider(), Some("github"));
        assert_eq!(capture.to_bytes(), text);
        let sent = b"POST /a HTTP/1.1\n# recorded for: github\n# recorded for github\n\n{}";
        assert!(Capture::parse(sent).is_err());
        let request = capture.into_received();
        let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["a"]);
        Ok(())
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, reason) in [
            ("", "it is empty"),
            ("{}\n", "its first line"),
            ("POST /a HTTP/1.1\nno header\n\n", "line 2"),
            (
                "# recorded for a\nPOST /a HTTP/1.1\nno header\n\n",
                "line 3",
            ),
            ("# recorded for a\n", "its request line"),
            ("POST /a HTTP/1.1\nA: b\n", "the empty line"),
        ] {
            let error = Capture::parse(text.as_bytes()).err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_announced_length_is_compared() {
        let of = |rest: &'static str, announced| {
            let announced = HeaderValue::from_static(announced);
            let (body, remark) = cut(rest.as_bytes(), Some(&announced));
            (body.len(), remark.is_some())
        };
        assert_eq!(of("{}", "2"), (2, false));
        assert_eq!(of("{}\r\n", "2"), (2, true));
        assert_eq!(of("{ }", "2"), (3, true));
        assert_eq!(of("{}", "3"), (2, true));
    }
}
