//! The list of all dashboard pages: the name of each page, its place in the menu, and the right that it needs. The
//! routes, the menu and the checks of rights use this list. Tests include this file, so it must not use anything from
//! the crate.

/// A page, or an address to which forms are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Overview,
    Endpoint,
    Deliveries,
    Delivery,
    Payload,
    Capture,
    Rejected,
    Lookup,
    Actions,
    Action,
    Confirm,
    Act,
    Cancel,
    Status,
    Why,
}

/// The methods of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Get,
    /// The parameters can also be posted, because they may be too long for an address. Posting them changes nothing.
    GetOrPost,
    /// The page changes something.
    Post,
}

/// The right that a page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    SeePayloads,
    Operate,
}

/// The properties of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) page: Page,
    /// The last segment of the page's address.
    pub(super) name: &'static str,
    /// The page's name in the menu, if the menu lists the page.
    pub(super) menu: Option<&'static str>,
    pub(super) takes: Takes,
    pub(super) needs: Right,
    /// Whether the page's numbers cover all tenants. If so, only readers who may see all tenants may open the page.
    pub(super) is_of_all_tenants: bool,
    /// Whether the page exists only as JSON. `src/documentation/stability.md` promises the format.
    pub(super) is_for_programs: bool,
}

/// All pages, in the order of the menu.
pub(super) const PAGES: [Entry; 15] = [
    Entry {
        menu: Some("Overview"),
        is_of_all_tenants: true,
        ..read(Page::Overview, "overview")
    },
    Entry {
        is_of_all_tenants: true,
        ..read(Page::Endpoint, "endpoint")
    },
    Entry {
        menu: Some("Deliveries"),
        ..read(Page::Deliveries, "deliveries")
    },
    read(Page::Delivery, "delivery"),
    Entry {
        needs: Right::SeePayloads,
        ..read(Page::Payload, "payload")
    },
    // Only with the feature `testing`.
    Entry {
        needs: Right::SeePayloads,
        ..read(Page::Capture, "capture")
    },
    Entry {
        menu: Some("Rejected"),
        is_of_all_tenants: true,
        ..read(Page::Rejected, "rejected")
    },
    Entry {
        menu: Some("Look up"),
        takes: Takes::GetOrPost,
        ..read(Page::Lookup, "lookup")
    },
    Entry {
        menu: Some("Actions"),
        is_of_all_tenants: true,
        ..read(Page::Actions, "actions")
    },
    Entry {
        is_of_all_tenants: true,
        ..read(Page::Action, "action")
    },
    Entry {
        takes: Takes::GetOrPost,
        needs: Right::Operate,
        ..read(Page::Confirm, "confirm")
    },
    Entry {
        takes: Takes::Post,
        needs: Right::Operate,
        ..read(Page::Act, "act")
    },
    Entry {
        takes: Takes::Post,
        needs: Right::Operate,
        is_of_all_tenants: true,
        ..read(Page::Cancel, "cancel")
    },
    Entry {
        is_of_all_tenants: true,
        is_for_programs: true,
        ..read(Page::Status, "status")
    },
    Entry {
        is_for_programs: true,
        ..read(Page::Why, "why")
    },
];

/// A page that everybody who may see the dashboard may open.
const fn read(page: Page, name: &'static str) -> Entry {
    Entry {
        page,
        name,
        menu: None,
        takes: Takes::Get,
        needs: Right::Read,
        is_of_all_tenants: false,
        is_for_programs: false,
    }
}

/// The pages in the menu: address and menu name.
pub(super) fn menu(of_all_tenants: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES
        .iter()
        .filter(move |entry| of_all_tenants || !entry.is_of_all_tenants)
        .filter_map(|entry| Some((entry.name, entry.menu?)))
}
