// Evaluates to a list of accessibility problems, one sentence for each. The harness runs this script even in a page
// that may not run its own scripts, and the script changes nothing in the page.
(() => {
    const problems = [];
    const all = (selector) => [...document.querySelectorAll(selector)];
    const words = (text) => (text ?? "").replace(/\s+/g, " ").trim();
    const tell = (element, problem) => {
        // Shows only the start tag. A clone of the element without its children would load what the element refers to.
        const tag = element.outerHTML.split(">")[0] + ">";
        problems.push(`${problem}: ${words(tag).slice(0, 120)} "${words(element.textContent).slice(0, 60)}"`);
    };
    const isRendered = (element) => element.checkVisibility({ visibilityProperty: true });
    const isHidden = (element) => !isRendered(element) || element.closest("[aria-hidden=true]") !== null;

    // The text content of a node, with the text alternatives of its pictures. It leaves out content that is hidden from
    // readers, and the content of a control in its own label.
    const textOf = (node, control) => {
        if (node.nodeType === Node.TEXT_NODE) return node.data;
        if (node.nodeType !== Node.ELEMENT_NODE || node === control) return "";
        if (node.getAttribute("aria-hidden") === "true" || !isRendered(node)) return "";
        const label = words(node.getAttribute("aria-label"));
        if (label) return label;
        if (node.localName === "img") return node.alt;
        if (node.localName === "svg") return node.querySelector(":scope > title")?.textContent ?? "";
        return [...node.childNodes].map((child) => textOf(child, control)).join(" ");
    };
    const labelledBy = (element) =>
        words(
            (element.getAttribute("aria-labelledby") ?? "")
                .split(/\s+/)
                .map((id) => (id ? (document.getElementById(id)?.textContent ?? "") : ""))
                .join(" "),
        );
    const explicitName = (element) =>
        labelledBy(element) || words(element.getAttribute("aria-label"));
    const isButton = (element) =>
        element.localName === "button" ||
        ["submit", "reset", "button", "image"].includes(element.type);
    const nameOf = (element) => {
        const explicit = explicitName(element);
        if (explicit) return explicit;
        if (element.localName === "button") return words(textOf(element)) || words(element.title);
        if (isButton(element)) {
            // The browser writes its own text on such a button if it has none.
            const own = { submit: "Submit", reset: "Reset" }[element.type] ?? "";
            return words(element.type === "image" ? element.alt : (element.getAttribute("value") ?? own)) || words(element.title);
        }
        const labels = [...(element.labels ?? [])].map((label) => textOf(label, element));
        return words(labels.join(" ")) || words(element.title);
    };

    // The page itself: language, title and landmarks.
    if (!words(document.documentElement.lang)) problems.push("html has no lang");
    if (!words(document.title)) problems.push("the page has no title");
    const mains = all("main, [role=main]").length;
    if (mains !== 1) problems.push(`there are ${mains} main elements`);
    const firsts = all("h1, [role=heading][aria-level='1']").length;
    if (firsts !== 1) problems.push(`there are ${firsts} h1 elements`);

    const ids = new Map();
    for (const element of all("[id]")) {
        if (element.id === "") tell(element, "an empty id");
        else if (ids.has(element.id)) tell(element, "an id that is not unique");
        ids.set(element.id, element);
    }
    for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
        for (const element of all(`[${attribute}]`)) {
            for (const id of words(element.getAttribute(attribute)).split(" ")) {
                if (!ids.has(id)) tell(element, `${attribute} names no element`);
            }
        }
    }

    // Headings.
    let above = 0;
    for (const heading of all("h1, h2, h3, h4, h5, h6, [role=heading]")) {
        if (isHidden(heading)) continue;
        const level = Number(heading.getAttribute("aria-level") ?? heading.localName.slice(1));
        if (level > above + 1) tell(heading, `a heading of level ${level} below one of level ${above}`);
        if (!words(textOf(heading))) tell(heading, "a heading without text");
        above = level;
    }

    // Names of controls and pictures.
    for (const control of all("input:not([type=hidden]), select, textarea, button")) {
        if (!isHidden(control) && !nameOf(control)) tell(control, "a control without a name");
    }
    for (const link of all("a[href]")) {
        if (!isHidden(link) && !explicitName(link) && !words(textOf(link)) && !words(link.title)) {
            tell(link, "a link without text");
        }
    }
    for (const picture of all("img, [role=img]")) {
        if (isHidden(picture) || ["presentation", "none"].includes(picture.getAttribute("role"))) continue;
        const title = picture.localName === "svg" && words(picture.querySelector(":scope > title")?.textContent);
        // An empty `alt` marks a picture as decoration.
        if (!explicitName(picture) && !title && !(picture.localName === "img" && picture.hasAttribute("alt"))) {
            tell(picture, "a picture without a label");
        }
    }
    for (const svg of all("svg:not([role=img])")) {
        if (!isHidden(svg) && svg.closest("[role=img], a, button") === null) {
            tell(svg, "a drawing that is neither labelled nor hidden from readers");
        }
    }

    // Contrast. Colours are [red, green, blue, alpha]. Their maxima are 255, 255, 255 and 1.
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const parsed = new Map();
    const parse = (colour) => {
        const plain = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(colour);
        if (plain) return [+plain[1], +plain[2], +plain[3], +(plain[4] ?? 1)];
        // Drawing the colour on the canvas converts it from any colour space.
        if (!parsed.has(colour)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
            const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
            parsed.set(colour, [red, green, blue, alpha / 255]);
        }
        return parsed.get(colour);
    };
    const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
    const luminance = ([red, green, blue]) => {
        const linear = (value) => {
            const part = value / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        };
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    };
    const contrast = (one, other) => {
        const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    };
    // The colour that the browser paints behind a page that has no background.
    const schemes = getComputedStyle(document.documentElement).colorScheme;
    const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isDark = schemes.includes("dark") && (prefersDark || !schemes.includes("light"));
    const paper = isDark ? [18, 18, 18, 1] : [255, 255, 255, 1];
    // The colour behind the text of an element, and how opaque the text is. The colour is `null` if the text is on a
    // picture, because the colours of the picture are not known.
    const behind = (element) => {
        const layers = [];
        let opacity = 1;
        let isCovered = false;
        for (let at = element; at; at = at.parentElement) {
            const style = getComputedStyle(at);
            opacity *= Number(style.opacity);
            if (isCovered) continue;
            const layer = parse(style.backgroundColor);
            if (style.backgroundImage !== "none") return { opacity, colour: null };
            layers.push(layer);
            isCovered = layer[3] === 1;
        }
        return { opacity, colour: layers.reduceRight((below, layer) => over(layer, below), paper) };
    };
    const isDisabled = (element) => element.closest(":disabled, [aria-disabled=true]") !== null;
    const check = (element, what, colour) => {
        const { opacity, colour: background } = behind(element);
        if (opacity === 0) return;
        if (!background) {
            tell(element, `${what} on a picture, whose contrast is unknown`);
            return;
        }
        const [red, green, blue, alpha] = parse(colour);
        const seen = over([red, green, blue, alpha * opacity], background);
        const ratio = contrast(seen, background);
        if (ratio < 4.5) {
            const hex = (rgb) => "#" + rgb.slice(0, 3).map((value) => Math.round(value).toString(16).padStart(2, "0")).join("");
            tell(element, `${what} with a contrast of ${ratio.toFixed(2)}, ${hex(seen)} on ${hex(background)}`);
        }
    };

    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const checked = new Set();
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!words(texts.currentNode.data) || checked.has(element)) continue;
        checked.add(element);
        // The options of a closed list are not rendered here.
        if (element.closest("script, style, noscript, template, option, textarea")) continue;
        if (!isRendered(element) || isDisabled(element)) continue;
        const style = getComputedStyle(element);
        check(element, "text", element instanceof SVGElement ? style.fill : style.color);
    }
    const untyped = ["hidden", "checkbox", "radio", "range", "color", "image"];
    for (const field of all("input, select, textarea")) {
        if (untyped.includes(field.type) || !isRendered(field) || isDisabled(field)) continue;
        if (field.placeholder) {
            check(field, "a placeholder", getComputedStyle(field, "::placeholder").color);
        }
        check(field, "a field", getComputedStyle(field).color);
    }

    // The bars of a plot: the shapes in an svg with the role of a picture. Shapes of the class `ground` are only the
    // background. Each bar must be visible on its background. It must also differ from a bar that it touches without a
    // stroke or a gap.
    const hexOf = (rgb) => "#" + rgb.slice(0, 3).map((value) => Math.round(value).toString(16).padStart(2, "0")).join("");
    for (const plot of all("svg[role=img]")) {
        if (isHidden(plot)) continue;
        const shapes = [...plot.querySelectorAll("rect")].map((element) => ({
            element,
            box: element.getBoundingClientRect(),
            fill: parse(getComputedStyle(element).fill),
        }));
        const told = new Set();
        const tellOnce = (element, problem) => {
            if (!told.has(problem)) tell(element, problem);
            told.add(problem);
        };
        const compare = (element, what, colour, other) => {
            const ratio = contrast(colour, other);
            if (ratio < 3) tellOnce(element, `${what} with a contrast of ${ratio.toFixed(2)}, ${hexOf(colour)} to ${hexOf(other)}`);
        };
        const paper = behind(plot).colour;
        const bars = shapes.filter(({ element }) => !element.matches(".ground"));
        for (const [number, { element, box, fill }] of bars.entries()) {
            const holds = (ground) =>
                ground.element.matches(".ground") &&
                ground.box.left < box.left + box.width / 2 && ground.box.right > box.left + box.width / 2;
            compare(element, "a bar", fill, shapes.find(holds)?.fill ?? paper);
            for (const other of bars.slice(number + 1)) {
                const isBeside = box.left < other.box.right - 0.1 && other.box.left < box.right - 0.1;
                const gap = Math.max(box.top - other.box.bottom, other.box.top - box.bottom);
                if (isBeside && gap < 0.5) compare(element, "a bar that touches another one", fill, other.fill);
            }
        }
    }

    // Targets of at least 24 by 24 pixels (WCAG 2.5.8). A smaller target needs free space: a circle of 24 pixels around
    // its middle must not touch another target, or the circle of another small target. A link in a sentence may be
    // smaller, and so may an element whose size only the browser has set.
    const SIZE = 24;
    const isInText = (link) => {
        if (getComputedStyle(link).display !== "inline") return false;
        let block = link.parentElement;
        while (getComputedStyle(block).display === "inline") block = block.parentElement;
        const own = [...block.querySelectorAll("a, button, summary, label")].map((target) => words(target.innerText));
        return words(block.innerText).length > words(own.join(" ")).length + 10;
    };
    const targets = all("a[href], button, input:not([type=hidden]), select, textarea, summary")
        .filter((element) => isRendered(element) && !isDisabled(element) && !(element.matches("a") && isInText(element)))
        .map((element) => {
            // A click on the label counts as a click on its control.
            const labels = [...(element.labels ?? [])].filter((label) => label.contains(element));
            const boxes = [element, ...(element.type === "checkbox" || element.type === "radio" ? labels : [])]
                .map((part) => part.getBoundingClientRect());
            return { element, box: boxes.reduce((one, other) => (other.width * other.height > one.width * one.height ? other : one)) };
        })
        // An element that stays out of sight until it has the focus is not a target for a pointer.
        .filter(({ box }) => box.right > 0 && box.bottom + scrollY > 0);
    const isSmall = ({ box }) => box.width < SIZE - 0.1 || box.height < SIZE - 0.1;
    const middle = ({ box }) => [box.left + box.width / 2, box.top + box.height / 2];
    const distance = ([x, y], { left, right, top, bottom }) =>
        Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
    for (const target of targets.filter(isSmall)) {
        const [x, y] = middle(target);
        const meets = targets.some((other) => {
            if (other === target) return false;
            if (distance([x, y], other.box) < SIZE / 2 - 0.1) return true;
            const [otherX, otherY] = middle(other);
            return isSmall(other) && Math.hypot(x - otherX, y - otherY) < SIZE - 0.1;
        });
        const { width, height } = target.box;
        if (meets) tell(target.element, `a target of ${width.toFixed(0)} by ${height.toFixed(0)} pixels`);
    }
    return problems;
})()
