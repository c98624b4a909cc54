// What pages gain with scripts: times in the reader's zone, a box that selects all, and pages that load
// themselves again while somebody looks at them. Everything works without.
"use strict";

(() => {
  const clock = { hour: "2-digit", minute: "2-digit" };
  const hour = new Intl.DateTimeFormat(undefined, clock);
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", ...clock });
  const year = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "numeric", ...clock,
  });
  const exact = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    second: "2-digit", timeZoneName: "longOffset",
  });

  // No more of a time than is needed today.
  function short(at) {
    const now = new Date();
    if (at.toDateString() === now.toDateString()) return hour.format(at);
    return (at.getFullYear() === now.getFullYear() ? day : year).format(at);
  }

  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.textContent = short(at);
      time.title = exact.format(at);
    }
    for (const title of root.querySelectorAll("svg title[data-at]")) {
      const at = new Date(title.dataset.at);
      if (Number.isNaN(at.getTime())) continue;
      title.textContent = title.textContent.replace(/^\d\d:\d\d UTC/, hour.format(at));
    }
  }

  // A box in the head of the column of boxes.
  function addSelectAll(root) {
    for (const form of root.querySelectorAll("form.selection")) {
      const boxes = [...form.querySelectorAll("tbody input[type=checkbox]")];
      const head = form.querySelector("thead th");
      if (boxes.length === 0 || !head) continue;
      const all = document.createElement("input");
      all.type = "checkbox";
      all.setAttribute("aria-label", "All on this page");
      all.addEventListener("change", () => {
        for (const box of boxes) box.checked = all.checked;
      });
      form.addEventListener("change", () => {
        const checked = boxes.filter((box) => box.checked).length;
        all.checked = checked === boxes.length;
        all.indeterminate = checked > 0 && !all.checked;
      });
      head.replaceChildren(all);
    }
  }

  // Not while the reader does something with the page.
  function isBusy() {
    const selection = document.getSelection();
    const active = document.activeElement;
    return document.visibilityState !== "visible"
      || (selection && !selection.isCollapsed)
      || (active && active !== document.body && active.id !== "main");
  }

  function reloadLater() {
    const seconds = Number(document.body.dataset.refresh);
    if (!seconds) return;
    setInterval(() => {
      if (!isBusy()) location.reload();
    }, seconds * 1000);
  }

  localize(document);
  addSelectAll(document);
  reloadLater();
})();
