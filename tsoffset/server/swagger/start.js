"use strict";
SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // The validator is another site's.
  validatorUrl: null,
});
