// What this script adds to pages: times in the reader's time zone, a box that selects all rows, a button that
// copies a command, and content that reloads while somebody looks at it. Everything works without it.
"use strict";

(() => {
  const clock = { hour: "2-digit", minute: "2-digit" };
  const date = { month: "short", day: "numeric" };
  const hour = new Intl.DateTimeFormat(undefined, clock);
  const day = new Intl.DateTimeFormat(undefined, date);
  const dayAndHour = new Intl.DateTimeFormat(undefined, { ...date, ...clock });
  const year = new Intl.DateTimeFormat(undefined, { year: "numeric", ...date, ...clock });
  const exact = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    second: "2-digit", timeZoneName: "longOffset",
  });

  // Leaves out the date if the time is today, and the year if it is this year.
  function short(at) {
    const now = new Date();
    if (at.toDateString() === now.toDateString()) return hour.format(at);
    return (at.getFullYear() === now.getFullYear() ? dayAndHour : year).format(at);
  }

  const formats = { hour: (at) => hour.format(at), day: (at) => day.format(at) };

  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.textContent = (formats[time.dataset.as] ?? short)(at);
      time.title = exact.format(at);
    }
    for (const title of root.querySelectorAll("svg title[data-at]")) {
      const at = new Date(title.dataset.at);
      if (Number.isNaN(at.getTime())) continue;
      title.textContent = title.textContent.replace(/^\d\d:\d\d UTC/, hour.format(at));
    }
  }

  // Adds a box that selects all rows to the head of the column of boxes.
  function addSelectAll(root) {
    for (const form of root.querySelectorAll("form.selection")) {
      const boxes = [...form.querySelectorAll("tbody input[type=checkbox]")];
      const head = form.querySelector("thead th");
      if (boxes.length === 0 || !head) continue;
      const all = document.createElement("input");
      all.type = "checkbox";
      const name = "All on this page";
      all.setAttribute("aria-label", name);
      all.addEventListener("change", () => {
        for (const box of boxes) box.checked = all.checked;
      });
      form.addEventListener("change", () => {
        const checked = boxes.filter((box) => box.checked).length;
        all.checked = checked === boxes.length;
        all.indeterminate = checked > 0 && !all.checked;
      });
      const label = document.createElement("label");
      label.className = "box";
      // The style shows this next to the box on a phone, where tables have no column names.
      label.dataset.label = name;
      label.append(all);
      head.replaceChildren(label);
    }
  }

  function addCopy(root) {
    for (const command of root.querySelectorAll("pre.command")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(command.textContent);
          button.textContent = "Copied";
        } catch {
          // Only a secure page may write to the clipboard. On any other page, the text is selected.
          document.getSelection().selectAllChildren(command);
        }
      });
      command.before(button);
    }
  }

  // The summaries of parts that the reader can open. Opened parts stay open when the content reloads.
  const opened = "details[data-key] > summary";

  // The second click of a double click on the previous page lands on this page. Without this function, that click would
  // select a word by mistake.
  function selectNothingYet() {
    document.getSelection()?.removeAllRanges();
    document.addEventListener("mousedown", (event) => {
      if (event.detail > 1) event.preventDefault();
    }, { once: true });
  }

  // Whether the content must not reload, because the page is hidden or the reader is using it.
  function isBusy() {
    const selection = document.getSelection();
    const active = document.activeElement;
    return document.visibilityState !== "visible"
      || (selection && !selection.isCollapsed)
      || (active && active !== document.body && active.id !== "main" && !active.matches(opened));
  }

  // Reloads only the content, so that the scroll position stays, and opened parts stay open.
  async function reload() {
    const answer = await fetch(location.href, { redirect: "manual" });
    // If the session has expired, a full reload shows the page that the server sends instead.
    const hasEnded = answer.type === "opaqueredirect" || [401, 403].includes(answer.status);
    if (hasEnded) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [now, next] = [document.getElementById("main"), page.getElementById("main")];
    if (!answer.ok || !next || isBusy()) return;
    const same = (details) => next.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
    for (const details of now.querySelectorAll("details[open][data-key]")) {
      same(details)?.setAttribute("open", "");
    }
    const focused = now.querySelector(":focus");
    const focusedNext = focused?.matches(opened) ? same(focused.parentElement)?.firstElementChild : null;
    prepare(next);
    now.replaceChildren(...next.childNodes);
    focusedNext?.focus({ preventScroll: true });
    document.title = page.title;
    document.body.dataset.refresh = page.body.dataset.refresh ?? "";
  }

  function reloadLater() {
    const seconds = Number(document.body.dataset.refresh);
    if (!seconds) return;
    setTimeout(async () => {
      try {
        if (!isBusy()) await reload();
      } catch {
        // The server cannot be reached. It may be back at the next reload.
      }
      reloadLater();
    }, seconds * 1000);
  }

  function prepare(root) {
    localize(root);
    addSelectAll(root);
    addCopy(root);
  }

  prepare(document);
  selectNothingYet();
  reloadLater();
})();
