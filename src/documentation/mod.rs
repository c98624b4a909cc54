#![doc = include_str!("links.md")]
#![doc = include_str!("README.md")]
#![cfg_attr(
    not(all(
        feature = "p256",
        feature = "reqwest",
        feature = "sea-orm",
        feature = "testing",
        feature = "x509"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the guide is for all features, and links to what they add"
    )
)]

// The pages are Markdown, to be read on a forge, too. There their links are those at the end of each page; here they are
// the links of `links.md`, which come first.

#[doc = include_str!("links.md")]
#[doc = include_str!("answers.md")]
pub mod answers {}

#[doc = include_str!("links.md")]
#[doc = include_str!("backups.md")]
pub mod backups {}

#[doc = include_str!("links.md")]
#[doc = include_str!("capacity.md")]
pub mod capacity {}

#[doc = include_str!("links.md")]
#[doc = include_str!("checked.md")]
pub mod checked {}

#[doc = include_str!("links.md")]
#[doc = include_str!("compared_with.md")]
pub mod compared_with {}

#[doc = include_str!("links.md")]
#[doc = include_str!("database.md")]
pub mod database {}

#[doc = include_str!("links.md")]
#[doc = include_str!("drivers.md")]
pub mod drivers {}

#[doc = include_str!("links.md")]
#[doc = include_str!("guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("links.md")]
#[doc = include_str!("handling.md")]
pub mod handling {}

#[doc = include_str!("links.md")]
#[doc = include_str!("leaving.md")]
pub mod leaving {}

#[doc = include_str!("links.md")]
#[doc = include_str!("moving_in.md")]
pub mod moving_in {}

#[doc = include_str!("links.md")]
#[doc = include_str!("operating.md")]
pub mod operating {}

#[doc = include_str!("links.md")]
#[doc = include_str!("personal_data.md")]
pub mod personal_data {}

#[doc = include_str!("links.md")]
#[doc = include_str!("production.md")]
pub mod production {}

/// How does each preset's provider sign, identify and retry?
///
#[doc = include_str!("../../PROVIDERS.md")]
pub mod provider_table {}

#[doc = include_str!("links.md")]
#[doc = include_str!("providers.md")]
pub mod providers {}

#[doc = include_str!("links.md")]
#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[doc = include_str!("links.md")]
#[doc = include_str!("reconciliation.md")]
pub mod reconciliation {}

#[doc = include_str!("links.md")]
#[doc = include_str!("recovery.md")]
pub mod recovery {}

#[doc = include_str!("links.md")]
#[doc = include_str!("rehearsal.md")]
pub mod rehearsal {}

#[doc = include_str!("links.md")]
#[doc = include_str!("stability.md")]
pub mod stability {}

#[doc = include_str!("links.md")]
#[doc = include_str!("subscriptions.md")]
pub mod subscriptions {}

#[doc = include_str!("links.md")]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("links.md")]
#[doc = include_str!("thin_events.md")]
pub mod thin_events {}

#[doc = include_str!("links.md")]
#[doc = include_str!("unique_index.md")]
pub mod unique_index {}

#[doc = include_str!("links.md")]
#[doc = include_str!("works_with.md")]
pub mod works_with {}
