/** A stand-in, what it stands for, and a sign of it that is cheap to look for. */
type StandIn = readonly [name: string, sign: RegExp, pattern: RegExp]

/**
 * Stand-ins for what rules need to know of but not to spell out. They are in capitals, which folded text is not:
 * FILE is a file known for its secrets, URL an address outside, NAME an argument or a tool by its name.
 */
const standIns: readonly StandIn[] = [
  [' BEACON ', /!\[/, /!\[[^\]\n]{0,200}\]\([^)\n]{0,20}:\/\/[^)\n]{0,300}[?&][^)\n]{0,80}=[^)\n]{0,200}\)/g],
  [' URL ', /:\/\//, /\b(?:https?|ftp|wss?):\/\/[^\s)'"`<>]+/g],
  [' URL ', /@/, /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}(?::[\w./-]{0,100})?/g],
  [' URL ', /\d\.\d/, /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g],
  [
    ' FILE ',
    /\/\./,
    /(?:~|\$home|%userprofile%|\/root|\/home\/[\w<>$-]{1,32}|\/users\/[\w<>$-]{1,32})\/\.(?:ssh|aws\/credentials|gnupg|netrc|npmrc|pypirc|docker|kube|git-credentials|config\/(?:gh|gcloud|google-chrome|chromium)|bash_history|zsh_history|cursor|claude|vscode|mozilla|azure|env)[\w./*-]*/g,
  ],
  [
    ' FILE ',
    /\.(?:ssh|aws|kube|gnupg|env|netrc|npmrc|git-|bash_|zsh_|pgpass)/,
    /(?<![\w-])\.(?:(?:ssh|aws|kube|gnupg)\/[\w./-]+|env(?:\.[a-z]+)?|netrc|npmrc|git-credentials|bash_history|zsh_history|pgpass)(?![\w-])(?: files?)?/g,
  ],
  [
    ' FILE ',
    /id_|\/etc\/|\/proc\//,
    /\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\/etc\/(?:passwd|shadow|sudoers)\b|\/proc\/self\/environ\b/g,
  ],
  [
    ' FILE ',
    /\.(?:json|ya?ml|csv|toml|env|dat|txt)\b/,
    /(?<![\w~$./-])[\w~$./-]{0,100}\b(?:mcp\.json|claude_desktop_config\.json|credentials\.(?:json|ya?ml|csv)|secrets?\.(?:json|ya?ml|toml|env|txt)|wallet\.dat|kubeconfig\.ya?ml|service[-_]account\.json)\b/g,
  ],
  [' NAME $1 ', /`/, /`([^`\n]{1,60})`/g],
  [' NAME $1$2 ', /['"]/, /(?<![\w'])'([a-z][\w.-]{0,40})'(?!\w)|"([a-z][\w.-]{0,40})"/g],
  [' NAME $1 ', /_/, /(?<!\w)([a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,8})(?!\w)/g],
]

/** Quoted examples of what a tool looks for are mentioned, not said. */
const mentioned =
  /\b(?:such as|like|e\.g\.|for example|for instance|phrases?|attempts? to)[:,]? ["“«][^"”»\n]{0,200}["”»]/g

/** Whether something is so is a question about a text that a tool looks at, and tells a model nothing. */
const asked = /(?:^|[:;,] )(?:does|is|are|do|has|have|did|whether) (?:it|the|this|they|an?)\b[^?]{0,200}\?/g

/** The sentences of a folded text, each in a form that rules can match. */
export function sentencesOf(folded: string): string[] {
  let text = /["“«]/.test(folded) ? folded.replace(mentioned, ' ') : folded
  if (text.includes('?')) text = text.replace(asked, ' ')
  for (const [name, sign, pattern] of standIns) if (sign.test(text)) text = text.replace(pattern, name)
  return text
    .split(/(?<=[.!?;])\s+|(?<=[。！？；])|\n+|\s-\s/)
    .map((sentence) => sentence.replace(/[\s*]+/g, ' ').trim())
    .filter((sentence) => sentence.length > 5)
    .flatMap(pieces)
}

/** Nobody writes longer sentences in good faith; a longer one is looked at in pieces that overlap. */
const longest = 1_000
const overlap = 200

function pieces(sentence: string): string[] {
  if (sentence.length <= longest) return [sentence]
  const found: string[] = []
  for (let at = 0; at < sentence.length; at += longest - overlap) found.push(sentence.slice(at, at + longest))
  return found
}
