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
        follow(card);
      })
      .catch(function (error) {
        live.remove(); // the still stays
        console.error(error);
      });
  }

  // Charts measure their card when the window is resized. A sidebar that opens, or a page that settles a moment after
  // the window did, changes the card without that.
  function follow(card) {
    var width = card.clientWidth;
    new ResizeObserver(function () {
      if (card.clientWidth !== width) {
        width = card.clientWidth;
        window.dispatchEvent(new Event("resize"));
      }
    }).observe(card);
  }

  document.querySelectorAll("figure.chart").forEach(draw); // this script is deferred: the page has been read
})();
