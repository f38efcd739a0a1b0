// Runs before the first paint, so that a chosen theme never flashes. Kept a file of its own: no inline script, strict CSP.
try {
  var chosen = localStorage.getItem('quorate.theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
} catch {
  // Storage may be forbidden; the system's preference then applies.
}
