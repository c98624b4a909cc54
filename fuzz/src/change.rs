//! One change of a signed request.

use http::request::Parts;
use http::{HeaderName, HeaderValue};

/// One change of a signed request: what is changed, at which position, and the new byte.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    kind: u8,
    header: u8,
    at: [u8; 2],
    byte: u8,
}

impl Change {
    pub fn of([kind, header, high, low, byte]: [u8; 5]) -> Self {
        Self {
            kind,
            header,
            at: [high, low],
            byte,
        }
    }

    /// Changes the request. If the result would not be a request, leaves it unchanged.
    pub fn make(self, head: &mut Parts, body: &mut Vec<u8>) {
        match self.kind % 8 {
            0 => self.replace(body),
            1 => body.insert(self.place(body.len() + 1), self.byte),
            2 if !body.is_empty() => drop(body.remove(self.place(body.len()))),
            3 => body.truncate(self.place(body.len() + 1)),
            4 => {
                if let Some((name, value)) = self.changed_header(head) {
                    head.headers.insert(name, value);
                }
            }
            5 => {
                if let Some((name, value)) = self.changed_header(head) {
                    head.headers.append(name, value);
                }
            }
            6 => {
                let name = head.headers.keys().nth(self.header.into()).cloned();
                name.map(|name| head.headers.remove(name));
            }
            7 => {
                let mut uri = head.uri.to_string().into_bytes();
                self.replace(&mut uri);
                if let Ok(uri) = uri.try_into() {
                    head.uri = uri;
                }
            }
            _ => {}
        }
    }

    fn place(self, len: usize) -> usize {
        usize::from(u16::from_be_bytes(self.at)) % len
    }

    fn replace(self, text: &mut [u8]) {
        if !text.is_empty() {
            text[self.place(text.len())] = self.byte;
        }
    }

    fn changed_header(self, head: &Parts) -> Option<(HeaderName, HeaderValue)> {
        let name = head.headers.keys().nth(self.header.into())?;
        let mut value = head.headers[name].as_bytes().to_vec();
        self.replace(&mut value);
        Some((name.clone(), HeaderValue::from_bytes(&value).ok()?))
    }
}
