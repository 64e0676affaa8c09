// A classic script in a file of its own: the CSP lets no inline one run. The rest is in src/shell/theme.ts.
try {
  const theme = localStorage.getItem('toolway.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage may be forbidden: the system's theme it is.
}
