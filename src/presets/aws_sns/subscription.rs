//! The messages that announce the start or the end of a subscription.

use super::message::{Kind, Message};
use super::scheme::is_sns;
use crate::provider::{Handshake, HandshakeRequest};

/// Whether an address confirms a subscription and belongs to SNS in the region of the topic.
pub(super) fn is_confirmation_url(url: &str, topic: &str) -> bool {
    let host = url
        .strip_prefix("https://")
        .and_then(|rest| rest.split_once("/?Action=ConfirmSubscription&"))
        .map(|(host, _)| host);
    host.is_some_and(|host| is_sns(host, topic)) && url.chars().all(|c| c.is_ascii_graphic())
}

pub(super) fn confirmation(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let message = Message::read(request.body())?;
    let handshake = Handshake::empty(message.kind.name());
    match message.kind {
        Kind::Notification => None,
        Kind::SubscriptionConfirmation => Some(handshake.confirmed_at(message.subscribe_url?.0)),
        // Do not visit the address in this message: that would subscribe again.
        Kind::UnsubscribeConfirmation => Some(handshake),
    }
}
