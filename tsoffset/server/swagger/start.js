"use strict";
// The colours that were chosen on the status page.
try {
  const theme = localStorage.getItem("tsoffset-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Those of the system.
}
SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  // The validator is another site's.
  validatorUrl: null,
});
