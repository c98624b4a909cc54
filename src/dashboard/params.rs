//! The parameters of pages and forms, and links with them.

use std::fmt;

use form_urlencoded::Serializer;

use super::error::PageError;

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// The parameters of a query and of a form. Postgres cannot hold NUL, so nothing has such a name.
    pub(super) fn parse(query: &str, form: &[u8]) -> Result<Self, PageError> {
        let pairs = |encoded| form_urlencoded::parse(encoded).into_owned();
        let all: Vec<_> = pairs(query.as_bytes()).chain(pairs(form)).collect();
        if all.iter().any(|(_, value)| value.contains('\0')) {
            return Err(PageError::bad_request("No name or id can have a NUL."));
        }
        Ok(Self(all))
    }

    /// The first value of this name, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let first = self
            .0
            .iter()
            .find(|(known, value)| known == name && !value.is_empty());
        first.map(|(_, value)| value.as_str())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// A time in Unix seconds.
    pub(super) fn seconds(&self, name: &str) -> Option<f64> {
        let seconds: f64 = self.get(name)?.parse().ok()?;
        // What Postgres can hold.
        (0.0..1e11).contains(&seconds).then_some(seconds)
    }
}

/// A link to a page of the dashboard, relative, so that it works under any prefix.
#[derive(Clone)]
pub(super) struct Link {
    page: &'static str,
    query: Vec<(&'static str, String)>,
}

impl Link {
    pub(super) fn to(page: &'static str) -> Self {
        Self {
            page,
            query: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Leaves out what is empty.
    pub(super) fn with_some(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The parameters alone.
    pub(super) fn query(&self) -> String {
        let mut encoded = Serializer::new(String::new());
        encoded.extend_pairs(self.query.iter());
        encoded.finish()
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.page)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query())?;
        }
        Ok(())
    }
}

impl maud::Render for Link {
    fn render_to(&self, buffer: &mut String) {
        self.to_string().render_to(buffer);
    }
}
