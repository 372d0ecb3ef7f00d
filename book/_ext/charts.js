// Draw every chart of the page from the specification that stands in it, and take away its still picture.
(function () {
  "use strict";

  var NARROW = 480; // pixels of a card; below it titles are broken and legends have fewer columns
  var LETTER = 7; // pixels of a letter of a title or a label, about
  var ROW_NAMES = 190; // pixels beside a plot whose rows have names
  var NUMBERS = 80; // pixels beside a plot whose rows are numbers
  var SYMBOL = 40; // pixels of a legend's symbol, with the room between two columns

  function draw(figure) {
    var card = figure.querySelector(".chart-card");
    var live = document.createElement("div");
    live.className = "chart-live";
    card.appendChild(live);
    var spec = JSON.parse(figure.querySelector('script[type="application/vnd.vegalite+json"]').textContent);
    var narrow = card.clientWidth < NARROW;
    if (narrow) {
      fit(spec, card.clientWidth);
    }
    return window
      .vegaEmbed(live, spec, { mode: "vega-lite", renderer: "svg", actions: false, tooltip: { theme: "light" } })
      .then(function (drawn) {
        card.querySelectorAll(".chart-still, .chart-live").forEach(function (earlier) {
          if (earlier !== live) {
            earlier.remove();
          }
        });
        figure.dataset.drawn = "live";
        follow(figure, card, narrow, drawn);
      })
      .catch(function (error) {
        live.remove(); // the still stays
        console.error(error);
      });
  }

  // Charts measure their card when the window is resized. A sidebar that opens, or a page that settles a moment after
  // the window did, changes the card without that.
  function follow(figure, card, narrow, drawn) {
    var width = card.clientWidth;
    var watch = new ResizeObserver(function () {
      if (card.clientWidth === width) {
        return;
      }
      width = card.clientWidth;
      if (width && width < NARROW !== narrow) {
        watch.disconnect();
        drawn.finalize();
        draw(figure);
      } else {
        window.dispatchEvent(new Event("resize"));
      }
    });
    watch.observe(card);
  }

  // Make titles and legends fit the plot of a narrow card: what Vega lays out beyond the card is cut off.
  function fit(spec, width) {
    var all = encodings(spec);
    var named = all.some(function (encoding) {
      return encoding.y && encoding.y.type === "nominal";
    });
    var plot = width - (named ? ROW_NAMES : NUMBERS);
    all.forEach(function (encoding) {
      if (encoding.x && typeof encoding.x.title === "string") {
        encoding.x.title = lines(encoding.x.title, plot / LETTER);
      }
      ["color", "shape", "strokeDash"].forEach(function (name) {
        var channel = encoding[name];
        if (channel && channel.legend !== null && channel.scale && channel.scale.domain) {
          var longest = Math.max.apply(null, channel.scale.domain.map(function (label) { return String(label).length; }));
          var columns = Math.max(1, Math.floor(plot / (longest * LETTER + SYMBOL)));
          channel.legend = Object.assign({}, channel.legend, { columns: columns });
        }
      });
    });
  }

  function encodings(spec) {
    var below = [].concat(spec.layer || [], spec.hconcat || [], spec.vconcat || [], spec.concat || [], spec.spec || []);
    return below.reduce(function (found, part) {
      return found.concat(encodings(part));
    }, spec.encoding ? [spec.encoding] : []);
  }

  function lines(title, most) {
    return title.split(" ").reduce(function (found, word) {
      var last = found.length - 1;
      if (last >= 0 && found[last].length + 1 + word.length <= most) {
        found[last] += " " + word;
      } else {
        found.push(word);
      }
      return found;
    }, []);
  }

  document.querySelectorAll("figure.chart").forEach(draw); // this script is deferred: the page has been read
})();
