// Draw every chart of the page from the specification that stands in it, and take away its still picture.
(function () {
  "use strict";

  function draw(figure) {
    var card = figure.querySelector(".chart-card");
    var live = document.createElement("div");
    live.className = "chart-live";
    card.appendChild(live);
    var spec = JSON.parse(figure.querySelector('script[type="application/vnd.vegalite+json"]').textContent);
    return window
      .vegaEmbed(live, spec, { mode: "vega-lite", renderer: "svg", actions: false, tooltip: { theme: "light" } })
      .then(function () {
        card.querySelector(".chart-still").remove();
        figure.dataset.drawn = "live";
      })
      .catch(function (error) {
        live.remove(); // the still stays
        console.error(error);
      });
  }

  document.querySelectorAll("figure.chart").forEach(draw); // this script is deferred: the page has been read
})();
