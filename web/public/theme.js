// A separate file, because the CSP forbids inline scripts. The rest is in src/shell/theme.ts.
try {
  const theme = localStorage.getItem('toolway.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Without storage, the system's theme applies.
}
