// The site's search runs in a worker, which browsers do not start for a page that was opened as a file.
// There a hidden frame takes the worker's place: it has the same postMessage() and importScripts().
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve));
    this.receive = (event) => {
      if (event.source !== inside) return;
      const message = new MessageEvent("message", { data: event.data });
      this.dispatchEvent(message);
      this.onmessage?.(message);
    };
    addEventListener("message", this.receive);
    inside.document.open();
    inside.document.write(
      `<body><script>(${FrameWorker.prepare})()</script><script src="${url}"></script></body>`,
    );
    inside.document.close();
  }

  // Runs in the frame, before the worker's script.
  static prepare = `function () {
    window.postMessage = (data) => parent.postMessage(data, "*");
    window.importScripts = async (...urls) => {
      for (const url of urls) {
        await new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = resolve;
          document.body.append(script);
        });
      }
    };
  }`;

  postMessage(data) {
    this.loaded.then(() => {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
    });
  }

  terminate() {
    removeEventListener("message", this.receive);
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
