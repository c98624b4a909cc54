//! The extensions with which the test kit makes the layer roll back instead of commit. `assert_idempotent` uses this to
//! find writes that are not part of the transaction.

use bytes::Bytes;
use http::{Request, Response};

/// An extension of a request. If the handler answers success, the layer must roll back the transaction. Only the test
/// kit can set it: extensions do not come over the wire, and the type is private.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RollBack;

/// An extension of the response to a request with [`RollBack`], if the handler has answered success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RolledBack;

/// An extension of the response to a request with [`RollBack`] that was not handled, because the layer allows its
/// handler to write on other connections. The layer could not have rolled back these writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skipped;

/// An extension of a request that is handled before it is answered, even with `Keep::accepted`.
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

    /// The response to a request that is not handled, see [`Skipped`].
    pub(super) fn skipped<B: From<Bytes>>() -> Response<B> {
        let mut response = Response::new(B::from(Bytes::new()));
        response.extensions_mut().insert(Skipped);
        response
    }

    pub(super) fn done<B>(response: &mut Response<B>) {
        response.extensions_mut().insert(RolledBack);
    }
}
