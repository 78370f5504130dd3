"use strict";
// The chosen theme is remembered for all pages of this origin; storage may be refused for files.
const storage = { get() { try { return localStorage.getItem("intloom-theme"); } catch { return null; } }, set(v) { try { localStorage.setItem("intloom-theme", v); } catch { /* not remembered */ } } };
if (["light", "dark"].includes(storage.get())) document.documentElement.dataset.theme = storage.get();
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  storage.set(document.documentElement.dataset.theme);
  dispatchEvent(new Event("themechange"));
});
