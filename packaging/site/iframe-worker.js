// Browsers refuse workers to pages that are opened as files. There this takes the place of Worker, for the search: the script of the
// worker runs in a hidden frame, whose messages go to and fro like a worker's.
if (location.protocol === "file:") {
  // By its second name the worker knows that its scripts are beside its own, not beside the page.
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      // An assignment, because the frame's own postMessage would send the message to the frame itself.
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve());
      this.loaded = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
