/// How a user sees a page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether the user prefers dark colours.
    pub dark: bool,
    /// The width of the window in CSS pixels. Even a narrow window behaves like a window on a
    /// desktop. A phone would zoom out until a page that is too wide fits.
    pub width: u32,
    pub height: u32,
    /// Whether scripts of the page run. [`Page::eval`](crate::Page::eval) works in either case.
    pub javascript: bool,
    pub timezone: &'static str,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            dark: false,
            width: 1280,
            height: 800,
            javascript: true,
            timezone: "UTC",
        }
    }
}
