// Everything works without this file. It makes results follow the typing, keys move through them,
// and an edit in the repository appear on the open page.
"use strict";

const CHECK_MS = 1000;
const TYPING_MS = 90;
const AGAIN_MS = 700;
const COPIED_MS = 1500;
const shown = new WeakMap();
let latest = 0;
// What was asked for last, shown or on its way: an edit while somebody types must not bring back
// what the address still says.
let wanted = location.pathname + location.search;

function addressOf(form) {
  const values = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "") values.append(name, value);
  }
  return form.getAttribute("action") + (values.size ? `?${values}` : "");
}

// The part of a page that changes; null when there is none to show.
async function fetched(address) {
  const url = new URL(address, location.origin);
  url.searchParams.set("part", "1");
  const answer = await fetch(url.pathname + url.search, { credentials: "same-origin" }).catch(() => null);
  if (answer && answer.status === 401) location.reload();
  // A page that is not there, or cannot be shown now, is told like one that is.
  const isPage = answer && (answer.headers.get("content-type") || "").startsWith("text/html");
  return isPage && (answer.ok || [404, 503].includes(answer.status)) ? answer.text() : null;
}

// What takes longer than the page itself follows it.
function load(within) {
  within.querySelectorAll("[data-load]").forEach(async (place) => {
    place.setAttribute("aria-busy", "true");
    const html = await fetched(place.dataset.load);
    if (html !== null && html !== place.innerHTML) place.innerHTML = html;
    place.removeAttribute("aria-busy");
  });
}

// What somebody chose, opened or wrote in a part stays when a newer one takes its place.
function stateOf(target) {
  const chosen = chosenIn(target);
  const form = target.querySelector("[data-inline]");
  const field = form && form.querySelector("[name=topic]");
  return {
    chosen: chosen && chosen.getAttribute("href"),
    opened: [...target.querySelectorAll("article:has(.why-told) [data-why]")].map((one) => one.getAttribute("href")),
    written: field ? field.value : "",
    isAsked: Boolean(form && form.querySelector(".why-told")),
    focus: target.contains(document.activeElement) ? document.activeElement.id : "",
  };
}

function restore(target, state) {
  target.querySelectorAll(".results h2 a").forEach((one) => {
    if (one.getAttribute("href") === state.chosen) one.closest("li").classList.add("chosen");
  });
  target.querySelectorAll("[data-why]").forEach((one) => {
    const address = one.getAttribute("href");
    if (state.opened.includes(address)) explain(one.closest("article"), address);
  });
  const form = target.querySelector("[data-inline]");
  if (form) form.querySelector("[name=topic]").value = state.written;
  if (form && state.isAsked) explain(form, addressOf(form));
  const focused = state.focus && document.getElementById(state.focus);
  if (focused) focused.focus();
}

// Until it is there again, what follows a page stays as it was.
function replace(target, html, isSame) {
  const loaded = new Map();
  target.querySelectorAll("[data-load]").forEach((one) => loaded.set(one.dataset.load, one.innerHTML));
  const state = stateOf(target);
  target.innerHTML = html;
  target.querySelectorAll("[data-load]").forEach((one) => {
    if (loaded.has(one.dataset.load)) one.innerHTML = loaded.get(one.dataset.load);
  });
  if (isSame) restore(target, state);
}

function chosenIn(target) {
  return target.querySelector("li.chosen h2 a");
}

function tell(within) {
  const words = [...within.querySelectorAll("[data-tell]")].map((one) => one.textContent.trim());
  document.getElementById("told").textContent = words.join("; ");
}

// A part as a browser writes it, to be compared with what the page came with.
function parsed(html) {
  const part = document.createElement("template");
  part.innerHTML = html;
  return part.innerHTML.trim();
}

async function show(address, target) {
  const mine = ++latest;
  wanted = address;
  const html = await fetched(address);
  // Only the answer to what was typed last is shown.
  if (html === null || mine !== latest) return;
  const isSame = address === location.pathname + location.search;
  if (!isSame) history.replaceState(null, "", address);
  // What did not change keeps its place, its focus and what was opened in it.
  const words = parsed(html);
  if (shown.get(target) !== words) {
    shown.set(target, words);
    replace(target, html, isSame);
    load(target);
    tell(target);
  }
  again(target);
}

// A page that was shown before the index was ready asks once more.
function again(target) {
  if (!target || !target.querySelector("[data-again]")) return;
  const mine = latest;
  setTimeout(() => {
    if (mine === latest) show(wanted, target);
  }, AGAIN_MS);
}

function follow(form) {
  const target = document.getElementById(form.dataset.follow);
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => show(addressOf(form), target), TYPING_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    const chosen = chosenIn(target);
    if (chosen) location.assign(chosen.href);
    else show(addressOf(form), target);
  });
}

function move(step) {
  const results = [...document.querySelectorAll(".results > li")];
  if (!results.length) return;
  const at = results.findIndex((one) => one.classList.contains("chosen"));
  results.forEach((one) => one.classList.remove("chosen"));
  const next = results[Math.min(Math.max(at + step, 0), results.length - 1)];
  next.classList.add("chosen");
  next.scrollIntoView({ block: "nearest" });
  document.getElementById("told").textContent = next.querySelector("h2").textContent.trim();
}

function onKey(event) {
  const field = document.querySelector("[data-jump]");
  const typing = event.target.matches("input, textarea, select");
  const asked = (event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey));
  if (asked && field) {
    event.preventDefault();
    field.focus();
    field.select();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target === field) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  }
}

async function explain(place, address) {
  const open = place.querySelector(".why-told");
  if (open) open.remove();
  const html = await fetched(address);
  if (html !== null) place.insertAdjacentHTML("beforeend", html);
}

async function onClick(event) {
  const why = event.target.closest("[data-why]");
  const copy = event.target.closest("[data-copy]");
  const other = event.target.closest("[data-why-again]");
  const around = other && other.closest("article, form");
  if (around) {
    event.preventDefault();
    await explain(around, other.getAttribute("href"));
  } else if (why && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const place = why.closest("article");
    const open = place.querySelector(".why-told");
    if (open) open.remove();
    else await explain(place, why.getAttribute("href"));
  } else if (copy) {
    await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent);
    const words = copy.textContent;
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = words; }, COPIED_MS);
  }
}

async function onSubmit(event) {
  if (!event.target.matches("[data-inline]")) return;
  event.preventDefault();
  await explain(event.target, addressOf(event.target));
}

// A number and its slider show the same.
function onInput(event) {
  const other = event.target.dataset.sets;
  if (other) document.getElementById(other).value = event.target.value;
}

function watch(target) {
  let known = document.getElementById("main").dataset.version;
  const look = async () => {
    if (document.visibilityState === "visible") {
      const answer = await fetch("/live", { credentials: "same-origin" }).catch(() => null);
      const version = answer && answer.ok ? await answer.text() : known;
      if (version !== known) await show(wanted, target);
      known = version;
    }
    setTimeout(look, CHECK_MS);
  };
  look();
}

// The heading that is being read is marked in the outline.
function mark() {
  const links = new Map();
  document.querySelectorAll(".outline a").forEach((one) => links.set(decodeURIComponent(one.hash.slice(1)), one));
  const seen = new IntersectionObserver((entries) => {
    entries.filter((one) => one.isIntersecting).forEach((one) => {
      links.forEach((link) => link.classList.toggle("now", link === links.get(one.target.id)));
    });
  }, { rootMargin: "-10% 0px -75% 0px" });
  links.forEach((_, id) => { const heading = document.getElementById(id); if (heading) seen.observe(heading); });
}

const live = document.querySelector("[data-live]");
if (live) shown.set(live, live.innerHTML.trim());
document.querySelectorAll("[data-follow]").forEach(follow);
document.addEventListener("keydown", onKey);
document.addEventListener("click", onClick);
document.addEventListener("submit", onSubmit);
document.addEventListener("input", onInput, true);
load(document);
mark();
again(live);
if (live) watch(live);
