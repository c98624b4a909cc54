//! What the test kit asks of the layer: a rollback in place of a commit, by which
//! `assert_idempotent` finds writes that are not part of the transaction.

use bytes::Bytes;
use http::{Request, Response};

/// In the extensions of a request whose success the layer must roll back. Only the test kit can put it
/// there: extensions do not come over the wire, and the type is private.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RollBack;

/// In the extensions of the response, if the handler had answered success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RolledBack;

/// In the extensions of the response to a request that was not handled, because its success could not be
/// rolled back: the layer allows writes by other connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skipped;

/// In the extensions of a request that is handled before it is answered, even with `Keep::accepted`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandleFirst;

impl HandleFirst {
    pub(super) fn is_wanted<B>(request: &Request<B>) -> bool {
        request.extensions().get::<Self>().is_some()
    }
}

impl RollBack {
    pub(super) fn is_wanted<B>(request: &Request<B>) -> bool {
        request.extensions().get::<Self>().is_some()
    }

    /// The response to a request that is not handled.
    pub(super) fn skipped<B: From<Bytes>>() -> Response<B> {
        let mut response = Response::new(B::from(Bytes::new()));
        response.extensions_mut().insert(Skipped);
        response
    }

    pub(super) fn done<B>(response: &mut Response<B>) {
        response.extensions_mut().insert(RolledBack);
    }
}
