'use strict';
// The search of this site runs in a worker, and a page that was opened from a folder may not start
// one: there the same script runs in a hidden frame, which hears and answers as a worker would.
if (location.protocol === 'file:') {
  class WorkerInAFrame extends EventTarget {
    #inside;

    constructor(address) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      this.#inside = new Promise((resolve) => {
        frame.addEventListener('load', () => resolve(frame.contentWindow), { once: true });
      });
      document.body.append(frame);
      this.#inside.then((inside) => {
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent('message', { data }));
        const script = inside.document.createElement('script');
        script.src = new URL(address, location);
        this.#inside = new Promise((resolve) => {
          script.addEventListener('load', () => resolve(inside), { once: true });
        });
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      const send = (inside) => inside.dispatchEvent(new inside.MessageEvent('message', { data }));
      this.#inside.then(() => this.#inside).then(send);
    }

    set onmessage(hear) { this.addEventListener('message', hear); }
  }
  window.Worker = WorkerInAFrame;
}
