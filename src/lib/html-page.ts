/** A page with one sentence and no external resources, shown after the redirect from an authorization server. */
export function plainPage(sentence: string, link?: { readonly href: string; readonly text: string }) {
  const back = link ? `<p><a href="${escapeHtml(link.href)}">${escapeHtml(link.text)}</a></p>` : ''
  return {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      // Send no referrer, because this page's address contains an authorization code.
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
    body: `<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolway</title><p>${escapeHtml(sentence)}</p>${back}</html>\n`,
  }
}

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
