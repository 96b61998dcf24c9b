// What does the page do by itself where scripts run? It keeps the figures live, and swaps its content in place when a
// form is sent or an answer asked for. Without this file everything works too, with whole pages.
(() => {
  "use strict";

  const EVERY = 2000;
  const NEWS = ".message, [data-announce], .error";
  const announcement = document.getElementById("announcement");
  let isPaused = false;
  let isLost = false;
  let latest = 0;

  const main = () => document.querySelector("main");
  const isNarrow = () => window.matchMedia("(max-width: 60rem)").matches;

  // ------------------------------------------------------------ figures

  function show(facts) {
    for (const element of document.querySelectorAll("[data-live]")) {
      const fact = facts[element.dataset.live];
      if (fact === undefined) continue;
      if (element.textContent !== fact.text) element.textContent = fact.text;
      element.dataset.tone = fact.tone;
    }
  }

  function tell() {
    const live = document.getElementById("live");
    const pause = document.getElementById("pause");
    if (!live || !pause) return;
    live.hidden = pause.hidden = false;
    live.textContent = isPaused ? live.dataset.off : isLost ? live.dataset.lost : live.dataset.on;
    pause.setAttribute("aria-pressed", String(isPaused));
  }

  async function poll() {
    const asked = main().dataset.liveUrl;
    if (asked && !isPaused && !document.hidden) {
      try {
        const reply = await fetch(asked, { headers: { Accept: "application/json" } });
        const state = await reply.json();
        isLost = !reply.ok;
        if (reply.ok && asked === main().dataset.liveUrl) show(state.facts);
      } catch {
        isLost = true;
      }
      tell();
    }
    setTimeout(poll, EVERY);
  }

  // ------------------------------------------------------------ forms and links

  async function fetched(url, options) {
    try {
      const reply = await fetch(url, { ...options, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      return { url: reply.url, title: page.title, content: page.querySelector("main[data-live-url]") };
    } catch {
      return null;
    }
  }

  async function swap(url, options, follows) {
    const mine = ++latest;
    main().setAttribute("aria-busy", "true");
    const page = await fetched(url, options);
    if (mine !== latest) return;
    main().removeAttribute("aria-busy");
    isLost = page === null;
    if (isLost) return tell();
    if (!page.content) return window.location.reload(); // an error page: the browser itself finds out
    put(page);
    follow(follows);
    tell();
  }

  function put(page) {
    const focused = document.activeElement && document.activeElement.id;
    main().replaceWith(document.adoptNode(page.content));
    document.title = page.title;
    if (page.url !== window.location.href) window.history.pushState(null, "", page.url);
    const again = focused && document.getElementById(focused);
    if (again) again.focus({ preventScroll: true });
    announcement.textContent = Array.from(main().querySelectorAll(NEWS), (each) => each.textContent.trim()).join(". ");
  }

  // On a telephone the answer is far below the buttons; everywhere a message may be just above what is seen.
  function follow(isFar) {
    const answer = document.getElementById("hammer") || document.getElementById("answer");
    const message = main().querySelector(".message");
    if (isFar && (message || answer)) (message || answer).scrollIntoView({ block: "start" });
    else if (message) message.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = event.submitter;
    if (!main().contains(form) || !main().dataset.liveUrl) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) fields.append(button.name, button.value);
    const action = (button && button.getAttribute("formaction")) || form.getAttribute("action");
    const follows = isNarrow() && !form.closest(".catalogs");
    if (form.method === "post") swap(action, { method: "POST", body: fields }, follows);
    else swap(`${action}?${fields}`, {}, follows);
  });

  document.addEventListener("click", (event) => {
    if (event.target.id === "pause") {
      isPaused = !isPaused;
      tell();
      return;
    }
    const link = event.target.closest("a.again, .tries a, a#refresh");
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || !main().dataset.liveUrl) return;
    event.preventDefault();
    swap(link.getAttribute("href"), {}, isNarrow() && link.id !== "refresh");
  });

  window.addEventListener("popstate", () => window.location.reload());

  if (main().dataset.liveUrl) {
    tell();
    setTimeout(poll, EVERY);
  }
})();
