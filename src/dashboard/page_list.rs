//! Each page of the dashboard, once: its name, its place in the menu, and what it takes to see it. The routes, the menu and the
//! checks of rights go by this list, and so do the tests, which include this file: it uses nothing of the crate.

/// A page, or an address to which a form is posted.
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

/// What a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Get,
    /// Also posted, since what it is asked for may be too long for an address. It changes nothing.
    GetOrPost,
    /// It changes something.
    Post,
}

/// The right that a page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    SeePayloads,
    Operate,
}

/// What is known of a page before it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) page: Page,
    /// The last segment of its address.
    pub(super) name: &'static str,
    /// What the menu calls it, if it is there.
    pub(super) menu: Option<&'static str>,
    pub(super) takes: Takes,
    pub(super) needs: Right,
    /// Whether its numbers are those of all tenants, so that only those who may see all of them see it.
    pub(super) is_of_all_tenants: bool,
    /// Whether it is there as JSON alone, which `src/documentation/stability.md` promises.
    pub(super) is_for_programs: bool,
}

/// In the order of the menu.
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

/// A page for everybody who may see the dashboard.
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

/// The names of the pages in the menu, with what it calls them.
pub(super) fn menu(of_all_tenants: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES
        .iter()
        .filter(move |entry| of_all_tenants || !entry.is_of_all_tenants)
        .filter_map(|entry| Some((entry.name, entry.menu?)))
}
