// Before anything is painted: the colours that were chosen here last, else those of the system.
(function () {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return localStorage.getItem("tsoffset-theme");
    } catch {
      return null;
    }
  }

  function show(theme) {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    document.getElementById("theme")?.setAttribute("aria-pressed", String(dark));
    return dark;
  }

  show(kept());
  addEventListener("DOMContentLoaded", () => {
    show();
    system.addEventListener("change", () => show());
    document.getElementById("theme").addEventListener("click", () => {
      const theme = show() ? "light" : "dark";
      show(theme);
      try {
        localStorage.setItem("tsoffset-theme", theme);
      } catch {
        // It holds until the page is left.
      }
    });
  });
})();
