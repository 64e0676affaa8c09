import { any, never, pattern, put, rulesOf, secret, take } from './rule.ts'

const goods = any(
  'all, each, every, any, everything, cop(?:y|ies), cookies?, keys?, files?, conversations?, chats?, customers?, contacts?',
  'repositor(?:y|ies), workspace, environment, secrets?, passwords?, credentials?, messages?, matches, history',
  'transcripts?, contents?, results?, database, tokens?, prompts?',
)

const place = any(
  'NAME, fields?, arguments?, parameters?, headers?, query string, here, this tool, body, URL, me, remote',
)

/** Phrases that describe the tool instead of instructing the model, or that forbid the action. */
const itself = pattern`\b(?:this tool|the tool|the server|the command|it|which|server|service) (?:will|can|may|does|cannot|also|automatically|then|only)\b|\b${never} (?:\w+ )?(?:read|open|include|pass|send|put|upload|share|paste|store|commit|add|provide|log|print)\b|\busers? (?:must|should|needs? to|has to|have to|can|may) (?:provide|supply|enter|submit)\b`

const unlessItself = (honest: string): RegExp => new RegExp(`${itself.source}|${honest}`, 'u')

/** Detect instructions to read data that a tool does not need, or to send it away. */
export const exfiltrationRules = rulesOf('exfiltration', [
  {
    pattern: pattern`\b${take}\b.{0,60}\bFILE\b|\b${put}\b.{0,40}\bFILE (?:\w+ ){0,2}(?:in|into|as|to|with|here)\b|\b(?:contents?|values?|text|data|bytes) (?:of|from|in) (?:\w+ ){0,4}FILE\b|\brequires?\b.{0,30}\bFILE\b|\b(?:add|append|write|insert|copy|install)\b.{0,60}\b(?:to|into) .{0,8}\bFILE\b|\bread ?\( ?FILE`,
    near: pattern`\b(?:${put}|${place}|before|first|prior|also|must|needs?|otherwise|only if|mention|step)\b`,
    unless: unlessItself(
      String.raw`\b(?:path (?:to|of)|defaults? to|located|stored in|such as|from your|in your|to your|loads |reads |lists |writes )|\.pub\b`,
    ),
  },
  {
    pattern: pattern`\b(?:valid|works?|succeeds?|accepted) only (?:if|when|with)\b.{0,60}\b(?:${secret})\b|\b(?:contents?|text) (?:of|from)(?: reading)?(?: the)? .{0,24}\b(?:ssh|private|env|passwords?|secrets?|credentials?|passwd|keychain)(?: keys?| files?)?\b`,
    unless: /\b(?:path|name|header|returns?|decode|secret named)\b/u,
  },
  {
    pattern: pattern`\b(?:all|every|everything|any)\b.{0,30}\b(?:messages?|user (?:has|have) (?:typed|said|written|told)|said|typed)\b.{0,40}\b(?:this (?:chat|conversation|session)|so far|including (?:those|passwords))\b`,
    unless: /\bsummar/u,
  },
  {
    pattern: pattern`\b(?:conversation|chat (?:log|history)|dialogue|transcript|message history|system prompt)\b.{0,30}\b(?:so far|(?:as|in|into) NAME|to (?:this|the) (?:tool|endpoint)|and submit|as (?:a )?(?:public )?comment)\b|\b(?:replicate|duplicate|mirror|stream|exfiltrate|leak|upload) (?:the |this |every )?(?:full |whole )?(?:conversation|chat|dialogue|messages|prompt)\b`,
    near: pattern`\b(?:${put}|with|must|after|before|each|every|always|call)\b`,
    unless: itself,
  },
  {
    pattern: pattern`\b(?:${put}|push|mirror|store|bcc|cc|invite|emailed|forwarded|sent|uploaded|copied|posted|mirrored|goes)\b.{0,90}\b(?:to|at|for|bcc|cc|via|into|onto|invite)\b.{0,16}\bURL\b|\b(?:bcc|cc|invite|loop in|loop|keep|let|copy in|inform|notify) URL\b`,
    near: pattern`\b${goods}\b`,
    unless: unlessItself(
      String.raw`\b(?:e\.g\.|examples?|such as|format|sends|returns|docs?|documentation|see|visit|learn more|issues?|feedback|questions|schema|default|supports|must be|in the form|endpoint url|api base|webhook)\b`,
    ),
  },
  {
    pattern: /\bBEACON\b/u,
  },
])
