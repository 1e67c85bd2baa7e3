
'use strict';
// Shows the posterior of the output that the slider points to. Everything it shows was computed and
// escaped when the page was made; here it is only put in its place.
(() => {
  const block = document.getElementById('posteriors');
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const curve = document.querySelector(`#${data.curve} path, path#${data.curve}`);
  const slider = document.getElementById('output-slider');
  const said = document.getElementById('output-said');

  function outline(beliefs) {
    const height = (belief) => (data.zero + belief * (data.one - data.zero)).toFixed(2);
    const steps = beliefs.map((belief, i) =>
      `V ${height(belief)} H ${data.edges[i + 1]}`).join(' ');
    return `M ${data.edges[0]} ${height(0)} ${steps} V ${height(0)} Z`;
  }

  function show() {
    const index = Number(slider.value);
    curve.setAttribute('d', outline(data.beliefs[index]));
    said.innerHTML = data.sentences[index];
  }

  slider.addEventListener('input', show);
  document.getElementById('output-control').hidden = data.beliefs.length < 2;
  show();
})();
