/* Saving what the page shows: a drawing as SVG or PNG, text as it is. Nothing leaves the computer. */
window.vaiphySave = (function () {
  "use strict";
  /* The drawing as it is seen, with the colours written into it, since it leaves the page's style behind. */
  function standalone(source, width, height) {
    const copy = source.cloneNode(true);
    const from = [source, ...source.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((element, k) => {
      const style = getComputedStyle(element);
      to[k].removeAttribute("class");
      to[k].setAttribute("style", ["fill", "stroke", "stroke-width", "font-size", "font-family", "font-weight", "text-anchor", "display", "visibility", "paint-order", "stroke-linejoin"].map((p) => p + ":" + style.getPropertyValue(p)).join(";"));
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  }

  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function png(name, source, width, height) {
    const image = new Image(), text = standalone(source, width, height), background = getComputedStyle(document.body).backgroundColor;
    image.onload = () => {
      const canvas = document.createElement("canvas"), zoom = Math.min(2, 16000 / Math.max(width, height));
      canvas.width = Math.ceil(width * zoom);
      canvas.height = Math.ceil(height * zoom);
      const context = canvas.getContext("2d");
      context.fillStyle = background;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name + ".png", blob, "image/png"));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }

  return {
    svg: (name, source, width, height) => save(name + ".svg", standalone(source, width, height), "image/svg+xml"),
    png: png,
    text: (name, content) => save(name, content, "text/plain")
  };
})();
