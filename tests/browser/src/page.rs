use std::fmt;
use std::path::Path;
use std::time::Duration;

use chromiumoxide::Page as Tab;
use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams,
    SetFocusEmulationEnabledParams, SetScriptExecutionDisabledParams, SetTimezoneOverrideParams,
};
use chromiumoxide::cdp::browser_protocol::input::{
    DispatchKeyEventParams, DispatchKeyEventType, DispatchMouseEventParams, DispatchMouseEventType,
    InsertTextParams, MouseButton,
};
use chromiumoxide::cdp::browser_protocol::page::{
    EnableParams as EnablePage, GetNavigationHistoryParams, NavigateParams, ReloadParams,
};
use chromiumoxide::cdp::browser_protocol::{log, network};
use chromiumoxide::cdp::js_protocol::runtime::{EnableParams as EnableRuntime, EvaluateParams};
use chromiumoxide::error::CdpError;
use chromiumoxide::page::ScreenshotParams;
use chromiumoxide::types::Command;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::browser::NotUnderstood;
use crate::watch::{MARK, Progress, Watch};
use crate::{Finding, Look};

/// How long a page may take to load, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// If a page does nothing for this long, it has come to rest.
const QUIET: Duration = Duration::from_millis(100);

/// A tab of a [`Browser`](crate::Browser), and what has happened in it.
pub struct Page {
    tab: Tab,
    look: Look,
    watch: Watch,
    /// How many page loads the test has waited for.
    awaited: u64,
    not_understood: NotUnderstood,
}

impl Page {
    pub(crate) async fn open(tab: Tab, look: Look, not_understood: NotUnderstood) -> Self {
        let watch = Watch::start(&tab).await;
        let page = Self {
            tab,
            look,
            watch,
            awaited: 0,
            not_understood,
        };
        page.run(EnablePage::default()).await;
        page.run(network::EnableParams::default()).await;
        page.run(log::EnableParams::default()).await;
        page.run(EnableRuntime::default()).await;
        let (width, height) = (i64::from(look.width), i64::from(look.height));
        page.run(SetDeviceMetricsOverrideParams::new(
            width, height, 1.0, false,
        ))
        .await;
        let scheme = if look.dark { "dark" } else { "light" };
        page.run(SetEmulatedMediaParams {
            media: None,
            features: Some(vec![MediaFeature::new("prefers-color-scheme", scheme)]),
        })
        .await;
        page.run(SetTimezoneOverrideParams::new(look.timezone))
            .await;
        page.run(SetScriptExecutionDisabledParams::new(!look.javascript))
            .await;
        // Without this, only one page of a browser could have the focus.
        page.run(SetFocusEmulationEnabledParams::new(true)).await;
        page
    }

    async fn run<T: Command>(&self, command: T) -> T::Response {
        let name = command.identifier();
        match self.tab.execute(command).await {
            Ok(answer) => answer.result,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Goes to a URL and waits until the page is loaded. Returns the status of the answer. From now
    /// on, requests to the host and port of that URL are not foreign.
    pub async fn goto(&mut self, url: &str) -> u16 {
        self.watch.allow(url);
        self.forget_loads().await;
        let answer = self.run(NavigateParams::new(url)).await;
        // For an error without a body, the browser shows an error page of its own, and reports an
        // error.
        if let Some(error) = answer.error_text
            && error != "net::ERR_HTTP_RESPONSE_CODE_FAILURE"
        {
            panic!("{url}: {error}");
        }
        self.wait_for_navigation().await
    }

    /// Loads the page again and waits for it, as [`goto`](Self::goto) does. A form that was
    /// submitted with POST is submitted again.
    pub async fn reload(&mut self) -> u16 {
        self.forget_loads().await;
        self.run(ReloadParams::default()).await;
        self.wait_for_navigation().await
    }

    /// Goes back in the history and waits for the page.
    pub async fn back(&mut self) -> u16 {
        self.forget_loads().await;
        self.evaluate("history.back()").await;
        self.wait_for_navigation().await
    }

    /// Skips earlier page loads that nobody has waited for, so that `wait_for_navigation` does not
    /// mistake one of them for the next load.
    async fn forget_loads(&mut self) {
        self.rest().await;
        self.awaited = self.watch.progress.borrow().loads;
    }

    /// Waits for the next page load that the test has not waited for yet. That load may already be
    /// complete. Returns the status of the answer, after all redirects.
    pub async fn wait_for_navigation(&mut self) -> u16 {
        let awaited = self.awaited;
        self.wait_until("a page to load", |progress| progress.loads > awaited)
            .await;
        self.awaited += 1;
        // Waits until all events from the time when the page was loading are known.
        self.settle().await;
        self.watch.status().unwrap_or_default()
    }

    async fn wait_until(&self, what: &str, is_over: impl Fn(&Progress) -> bool) {
        let mut progress = self.watch.progress.clone();
        match tokio::time::timeout(PATIENCE, progress.wait_for(is_over)).await {
            Ok(outcome) => drop(outcome.unwrap()),
            Err(_) => panic!(
                "waited too long for {what}; requested: {:?}, found: {:?}",
                self.watch.requests(),
                self.watch.take()
            ),
        }
    }

    /// Waits until a script of the page has created an element.
    pub async fn wait_for(&self, selector: &str) {
        let exists = format!("document.querySelector({}) !== null", json!(selector));
        self.wait_until_true(&exists, selector).await;
    }

    /// Waits until an expression is true. If it never is, the panic shows `what`.
    pub async fn wait_until_true(&self, javascript: &str, what: &str) {
        let poll = async {
            while !self.eval::<bool>(javascript).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, poll).await.is_err() {
            panic!("waited too long for {what} on {}", self.url().await);
        }
    }

    /// The URL that the address bar shows. This includes the URL of an error without a body, for
    /// which there is no document.
    pub async fn url(&self) -> String {
        let history = self.run(GetNavigationHistoryParams::default()).await;
        let index = usize::try_from(history.current_index).unwrap();
        history.entries[index].url.clone()
    }

    pub async fn title(&self) -> String {
        self.eval("document.title").await
    }

    /// The rendered text.
    pub async fn text(&self) -> String {
        self.eval("document.body.innerText").await
    }

    /// The rendered text of the first element that a selector matches.
    pub async fn text_of(&self, selector: &str) -> String {
        self.eval(&format!("{}.innerText", self.find(selector).await))
            .await
    }

    pub async fn html(&self) -> String {
        self.eval("document.documentElement.outerHTML").await
    }

    /// How many elements a selector matches.
    pub async fn count(&self, selector: &str) -> usize {
        self.eval(&format!(
            "document.querySelectorAll({}).length",
            json!(selector)
        ))
        .await
    }

    /// A JavaScript expression for the element.
    async fn find(&self, selector: &str) -> String {
        if self.count(selector).await == 0 {
            panic!(
                "no {selector} on {}:\n{}",
                self.url().await,
                self.html().await
            );
        }
        format!("document.querySelector({})", json!(selector))
    }

    /// Scrolls to the first element that a selector matches, and clicks into its middle. Panics if
    /// something else is there.
    pub async fn click(&self, selector: &str) {
        let place = self.place_of(selector).await;
        self.click_at(place, 1).await;
    }

    /// Scrolls to the first element that a selector matches, and returns its middle in window
    /// coordinates. If the style of the element does not allow clicks yet, waits until it does.
    /// Panics if something else is there.
    pub async fn place_of(&self, selector: &str) -> (f64, f64) {
        let element = self.find(selector).await;
        let takes_clicks = format!("getComputedStyle({element}).pointerEvents !== 'none'");
        self.wait_until_true(&takes_clicks, selector).await;
        let place: Option<(f64, f64)> = self
            .eval(&format!(
                "(() => {{
                    const element = {element};
                    element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                    const box = element.getClientRects()[0];
                    if (!box) return null;
                    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
                    const hit = document.elementFromPoint(x, y);
                    const labelled = [...(element.labels ?? [])].some((label) => label.contains(hit));
                    return element.contains(hit) || labelled ? [x, y] : null;
                }})()"
            ))
            .await;
        match place {
            Some(place) => place,
            None => panic!("{selector} on {} is hidden or covered", self.url().await),
        }
    }

    /// Clicks at a position in the window, on any element. `number` is 2 for the second click of a
    /// double click.
    pub async fn click_at(&self, (x, y): (f64, f64), number: i64) {
        for (kind, buttons) in [
            (DispatchMouseEventType::MouseMoved, 0),
            (DispatchMouseEventType::MousePressed, 1),
            (DispatchMouseEventType::MouseReleased, 0),
        ] {
            let mut event = DispatchMouseEventParams::new(kind, x, y);
            event.button = Some(MouseButton::Left);
            event.buttons = Some(buttons);
            event.click_count = Some(number);
            self.run(event).await;
        }
    }

    /// Presses a key and releases it: `Tab`, `Shift+Tab`, `Enter`, `Escape`, `Space`, an arrow
    /// such as `ArrowDown`, `Home`, `End`, or a character.
    pub async fn press(&self, key: &str) {
        let (modifiers, name) = match key.strip_prefix("Shift+") {
            Some(name) => (8, name),
            None => (0, key),
        };
        let (name, code, number, text) = match name {
            "Tab" => ("Tab", "Tab".to_owned(), 9, None),
            // The browser submits a form when it gets the character, and not when it gets the key.
            "Enter" => ("Enter", "Enter".to_owned(), 13, Some("\r")),
            "Escape" => ("Escape", "Escape".to_owned(), 27, None),
            "Space" => (" ", "Space".to_owned(), 32, Some(" ")),
            "End" => ("End", "End".to_owned(), 35, None),
            "Home" => ("Home", "Home".to_owned(), 36, None),
            "ArrowLeft" => ("ArrowLeft", "ArrowLeft".to_owned(), 37, None),
            "ArrowUp" => ("ArrowUp", "ArrowUp".to_owned(), 38, None),
            "ArrowRight" => ("ArrowRight", "ArrowRight".to_owned(), 39, None),
            "ArrowDown" => ("ArrowDown", "ArrowDown".to_owned(), 40, None),
            character => match character.as_bytes() {
                [letter] if letter.is_ascii_alphabetic() => {
                    let upper = letter.to_ascii_uppercase();
                    let code = format!("Key{}", char::from(upper));
                    (character, code, i64::from(upper), Some(character))
                }
                [digit] if digit.is_ascii_digit() => {
                    let code = format!("Digit{character}");
                    (character, code, i64::from(*digit), Some(character))
                }
                [_] => (character, String::new(), 0, Some(character)),
                _ => panic!("there is no key {key}"),
            },
        };
        let down = match text {
            Some(_) => DispatchKeyEventType::KeyDown,
            None => DispatchKeyEventType::RawKeyDown,
        };
        for (kind, text) in [(down, text), (DispatchKeyEventType::KeyUp, None)] {
            let mut event = DispatchKeyEventParams::new(kind);
            event.key = Some(name.to_owned());
            event.code = Some(code.clone());
            event.windows_virtual_key_code = Some(number);
            event.modifiers = Some(modifiers);
            event.text = text.map(str::to_owned);
            self.run(event).await;
        }
    }

    /// The element that has the focus: its tag name, followed by its id, its attributes `name` and
    /// `type`, and its text. Examples are `input#since[name=since][type=date]` and `a "Next page"`.
    /// Returns `body` if no element has the focus.
    pub async fn focused(&self) -> String {
        self.eval(
            "(() => {
                const element = document.activeElement ?? document.body;
                const name = element.localName;
                if (name === 'body') return name;
                const id = element.id ? `#${element.id}` : '';
                const attributes = ['name', 'type']
                    .filter((key) => element.hasAttribute(key))
                    .map((key) => `[${key}=${element.getAttribute(key)}]`);
                const text = ['a', 'button', 'summary'].includes(name)
                    ? ` \"${element.innerText.trim()}\"`
                    : '';
                return name + id + attributes.join('') + text;
            })()",
        )
        .await
    }

    /// Whether the first element that a selector matches has the focus.
    pub async fn has_focus(&self, selector: &str) -> bool {
        let element = self.find(selector).await;
        self.eval(&format!("document.activeElement === {element}"))
            .await
    }

    /// Replaces the content of a field by typing. Sets the value of a field that cannot be typed
    /// into, such as a `select` or a date.
    pub async fn fill(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        let typed: bool = self
            .eval(&format!(
                "(() => {{
                    const element = {element};
                    const value = {};
                    element.focus();
                    const untyped = ['color', 'date', 'datetime-local', 'month', 'range', 'time', 'week'];
                    if (element.localName !== 'select' && !untyped.includes(element.type)) {{
                        element.select();
                        return true;
                    }}
                    element.value = value;
                    if (element.value !== value) throw new Error(`takes no ${{value}}`);
                    element.dispatchEvent(new Event('input', {{ bubbles: true }}));
                    element.dispatchEvent(new Event('change', {{ bubbles: true }}));
                    return false;
                }})()",
                json!(text)
            ))
            .await;
        if typed && text.is_empty() {
            self.eval::<()>("document.execCommand('delete'), undefined")
                .await;
        } else if typed {
            self.run(InsertTextParams::new(text)).await;
        }
    }

    /// Clicks on a link, and waits for the page that it leads to. Returns the status of its answer.
    pub async fn click_through(&mut self, selector: &str) -> u16 {
        self.click(selector).await;
        self.wait_for_navigation().await
    }

    /// Submits the form that a selector matches, or the form around the matched element. As with a
    /// click on the form's button, the browser validates the form first. Returns the status of the
    /// answer.
    pub async fn submit(&mut self, selector: &str) -> u16 {
        let element = self.find(selector).await;
        self.evaluate(&format!("({element}.form ?? {element}).requestSubmit()"))
            .await;
        self.wait_for_navigation().await
    }

    /// Evaluates an expression as a debugger does, even if the scripts of the page do not run. If
    /// they do run and the result is a promise, waits for it. If the page reloads itself meanwhile,
    /// the expression is evaluated once more in the new page.
    pub async fn eval<T: DeserializeOwned>(&self, javascript: &str) -> T {
        let value = loop {
            match self.try_evaluate(javascript).await {
                Err(error) if error.to_string().contains("navigated or closed") => {}
                value => break value.unwrap_or_else(|error| panic!("{error}: {javascript}")),
            }
        };
        serde_json::from_value(value.clone())
            .unwrap_or_else(|error| panic!("{error}: {value} from {javascript}"))
    }

    async fn evaluate(&self, javascript: &str) -> Value {
        let value = self.try_evaluate(javascript).await;
        value.unwrap_or_else(|error| panic!("{error}: {javascript}"))
    }

    async fn try_evaluate(&self, javascript: &str) -> Result<Value, CdpError> {
        let mut command = EvaluateParams::new(javascript);
        command.return_by_value = Some(true);
        command.await_promise = Some(self.look.javascript);
        let answer = self.tab.execute(command).await?.result;
        if let Some(thrown) = answer.exception_details {
            let said = thrown.exception.and_then(|thrown| thrown.description);
            panic!("{}: {javascript}", said.unwrap_or(thrown.text));
        }
        Ok(answer.result.value.unwrap_or_default())
    }

    /// Writes a picture of the whole page as PNG.
    pub async fn screenshot(&self, file: impl AsRef<Path>) {
        self.take_picture(true, file).await;
    }

    /// Writes a picture of what the window shows as PNG.
    pub async fn screenshot_of_window(&self, file: impl AsRef<Path>) {
        self.take_picture(false, file).await;
    }

    async fn take_picture(&self, is_whole: bool, file: impl AsRef<Path>) {
        let picture = ScreenshotParams::builder()
            .capture_beyond_viewport(is_whole)
            .build();
        let bytes = self.tab.screenshot(picture).await.unwrap();
        std::fs::write(file, bytes).unwrap();
    }

    /// Whether the page can be scrolled sideways.
    pub async fn has_horizontal_overflow(&self) -> bool {
        // `innerWidth` would include a vertical scroll bar.
        self.eval("document.scrollingElement.scrollWidth > document.documentElement.clientWidth")
            .await
    }

    /// The URLs of all requests, in order.
    pub async fn requests(&self) -> Vec<String> {
        self.rest().await;
        self.watch.requests()
    }

    /// The findings since the last call.
    pub async fn findings(&self) -> Vec<Finding> {
        self.rest().await;
        let not_understood = std::mem::take(&mut *self.not_understood.lock().unwrap());
        let not_understood = not_understood.into_iter().map(Finding::NotUnderstood);
        self.watch
            .take()
            .into_iter()
            .chain(not_understood)
            .collect()
    }

    /// Waits until the page seems to have come to rest. For example, if the Content Security Policy
    /// forbids a form, the browser sends and stops it in two different processes, some time after
    /// the click. For a page that never rests, the wait ends after a while.
    async fn rest(&self) {
        self.settle().await;
        for _ in 0..20 {
            let before = self.watch.progress.borrow().others;
            tokio::time::sleep(QUIET).await;
            self.settle().await;
            if self.watch.progress.borrow().others == before {
                return;
            }
        }
    }

    /// Waits until all events of the page so far are known.
    async fn settle(&self) {
        let marks = self.watch.progress.borrow().marks;
        self.evaluate(&format!("console.debug({})", json!(MARK)))
            .await;
        self.wait_until("the events", |progress| progress.marks > marks)
            .await;
    }

    /// Panics if there are findings.
    #[track_caller]
    pub fn assert_clean(&self) -> impl Future<Output = ()> + '_ {
        let asked = std::panic::Location::caller();
        async move {
            let findings = self.findings().await;
            let url = self.url().await;
            assert!(
                findings.is_empty(),
                "{asked}: {url} is not clean:\n{}",
                lines(&findings)
            );
        }
    }

    /// Problems that keep some people from using the page: see `accessibility.js`.
    pub async fn accessibility_problems(&self) -> Vec<String> {
        self.eval(include_str!("accessibility.js")).await
    }

    /// Panics if there are accessibility problems.
    #[track_caller]
    pub fn assert_accessible(&self) -> impl Future<Output = ()> + '_ {
        let asked = std::panic::Location::caller();
        async move {
            let problems = self.accessibility_problems().await;
            let url = self.url().await;
            assert!(
                problems.is_empty(),
                "{asked}: {url} is not accessible:\n{}",
                lines(&problems)
            );
        }
    }
}

fn lines(all: &[impl fmt::Display]) -> String {
    all.iter().map(|one| format!("  {one}\n")).collect()
}
