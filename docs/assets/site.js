// The theme's markup, with what keyboards and screen readers need: names, and focus for what scrolls.
const complete = () => {
  for (const dialog of document.querySelectorAll(".md-search")) dialog.setAttribute("aria-label", "search");
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "none");
  for (const scrolls of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) scrolls.tabIndex = 0;
};
complete();
// The theme adds elements while it starts.
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
