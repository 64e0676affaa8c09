import { any, never, pattern, put, rulesOf, secret, secretWords, send, take, talk, talkWords, words } from './rule.ts'

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
    needs: ['FILE'],
    pattern: pattern`\b${take}\b.{0,60}\bFILE\b|\b${put}\b.{0,40}\bFILE (?:\w+ ){0,2}(?:in|into|as|to|with|here)\b|\b(?:contents?|values?|text|data|bytes) (?:of|from|in) (?:\w+ ){0,4}FILE\b|\brequires?\b.{0,30}\bFILE\b|\b(?:add|append|write|insert|copy|install)\b.{0,60}\b(?:to|into) .{0,8}\bFILE\b|\bread ?\( ?FILE`,
    near: pattern`\b(?:${put}|${place}|before|first|prior|also|must|needs?|otherwise|only if|mention|step)\b`,
    unless: unlessItself(
      String.raw`\b(?:path (?:to|of)|defaults? to|located|stored in|such as|from your|in your|to your|loads |reads |lists |writes )|\.pub\b`,
    ),
  },
  {
    needs: secretWords,
    and: take.words,
    pattern: pattern`\b${take}\b.{0,30}\b(?:(?:any|all|every|user's|their|the user's)\b.{0,20}\b(?:${secret})|private keys?|seed phrases?|the passwords? files?|(?:${secret})\b.{0,12}\b(?:of the user|from (?:the )?(?:\w+ )?(?:settings|environment|config\S*|browser|context|workspace|disk|session)|visible|found))\b.{0,80}\b(?:and|then|to|,) .{0,24}\b${put}\b|\b${take}\b.{0,30}\b(?:private|aws|any|all|user's) (?:${secret})\b.{0,60}\b(?:in|into|as|through|via) (?:the |this )?(?:NAME|field|argument|parameter)`,
    unless: unlessItself(String.raw`\b(?:get an?|reset|rotat\w+|to (?:log|sign) in|authenticat\w+)\b`),
  },
  {
    needs: secretWords,
    and: [...put.words, 'disclose', 'hold', 'contain', 'holds', 'surrender'],
    pattern: pattern`\b(?:${put}|hand over|disclose)\b.{0,40}\b(?:any|all|every|each|user'?s|their|his|her|found|visible|of the user|value of|aws|wallet|own)\b.{0,30}\b(?:${secret})\b.{0,60}\b(?:in|into|as|to|through|via|here|with|at|or)\b.{0,20}\b${place}|\b(?:must|should|has to|have to|need to|obliged to|required to|only if)\b.{0,60}\b(?:provide|supply|deposit|hand over|submit|disclose|record|surrender|carry|holds?|contain)\b.{0,30}\b(?:user'?s|their|private|master|aws|wallet|access tokens? found)\b.{0,20}(?:\b(?:${secret})\b|found)|\b${put} (?:the )?(?:${secret})\b.{0,30}\bof the user\b.{0,20}\b(?:in|into|as|to)\b`,
    unless: unlessItself(
      String.raw`\b(?:bearer|authorization header|to authenticate|for authentication|rotate|hash)\b`,
    ),
  },
  {
    needs: [...secretWords, 'ssh', 'private', 'env', 'passwd', 'keychain'],
    and: ['only', 'content', 'contents', 'value', 'values', 'text'],
    pattern: pattern`\b(?:valid|works?|succeeds?|accepted) only (?:if|when|with)\b.{0,60}\b(?:${secret})\b|\b(?:contents?|text) (?:of|from)(?: reading)?(?: the)? .{0,24}\b(?:ssh|private|env|passwords?|secrets?|credentials?|passwd|keychain)(?: keys?| files?)?\b`,
    unless: /\b(?:path|name|header|returns?|decode|secret named)\b/u,
  },
  {
    needs: ['variables', 'variable', 'vars', 'env'],
    pattern: pattern`\b(?:${send})\b.{0,20}\b(?:all|every|the|your|full)\b.{0,12}\b(?:environment variables?|env vars?)\b.{0,40}\b(?:${place})`,
    unless: unlessItself(String.raw`\b(?:sets?|configure)\b`),
  },
  {
    needs: talkWords,
    and: [...put.words, 'handing', 'print', 'output', 'reveal', 'retrieve', 'with', 'extract', 'disclose', 'reply'],
    pattern: pattern`\b(?:${put}|handing|print|output|reveal|disclose|retrieve|extract)\b.{0,60}\b(?:full|whole|entire|complete|all|every|current|verbatim|earlier|previous|last \w+|your|its|raw|user)\b.{0,24}\b${talk}\b|\bwith (?:\w+ )?(?:full|whole|entire|complete) ${talk}\b|\b(?:${put}|retrieve|extract|dump) (?:the |this )?(?:chat|conversation|message|dialogue) (?:log|history)\b|\b${put}\b.{0,40}\b(?:earlier|previous|last \w+|all previous) (?:messages|chats|prompts)\b`,
    near: pattern`\b(?:${put}|${place}|call|always|each|every|before|after|first|must|turn|prior|invoke)\b`,
    unless: unlessItself(
      String.raw`\b(?:relevant|(?:channel|thread|inbox|queue|bot|agent|meeting|room)s?|prompt templates?|model parameter)\b`,
    ),
  },
  {
    needs: ['messages', 'message', 'typed', 'said', 'told', 'written'],
    and: ['all', 'every', 'everything', 'any'],
    pattern: pattern`\b(?:all|every|everything|any)\b.{0,30}\b(?:messages?|user (?:has|have) (?:typed|said|written|told)|said|typed)\b.{0,40}\b(?:this (?:chat|conversation|session)|so far|including (?:those|passwords))\b`,
    unless: /\bsummar/u,
  },
  {
    needs: ['conversation', 'chat', 'dialogue', 'transcript', 'messages', 'history', 'prompt'],
    and: words('so NAME tool endpoint submit comment replicate duplicate mirror stream leak upload exfiltrate'),
    pattern: pattern`\b(?:conversation|chat (?:log|history)|dialogue|transcript|message history|system prompt)\b.{0,30}\b(?:so far|(?:as|in|into) NAME|to (?:this|the) (?:tool|endpoint)|and submit|as (?:a )?(?:public )?comment)\b|\b(?:replicate|duplicate|mirror|stream|exfiltrate|leak|upload) (?:the |this |every )?(?:full |whole )?(?:conversation|chat|dialogue|messages|prompt)\b`,
    near: pattern`\b(?:${put}|with|must|after|before|each|every|always|call)\b`,
    unless: itself,
  },
  {
    needs: ['URL'],
    pattern: pattern`\b(?:${put}|push|mirror|store|bcc|cc|invite|emailed|forwarded|sent|uploaded|copied|posted|mirrored|goes)\b.{0,90}\b(?:to|at|for|bcc|cc|via|into|onto|invite)\b.{0,16}\bURL\b|\b(?:bcc|cc|invite|loop in|loop|keep|let|copy in|inform|notify) URL\b`,
    near: pattern`\b${goods}\b`,
    unless: unlessItself(
      String.raw`\b(?:e\.g\.|examples?|such as|format|sends|returns|docs?|documentation|see|visit|learn more|issues?|feedback|questions|schema|default|supports|must be|in the form|endpoint url|api base|webhook)\b`,
    ),
  },
  {
    needs: ['also'],
    pattern: pattern`\balso (?:reads|collects|sends|uploads|forwards|copies|harvests)\b.{0,40}\b(?:private keys?|passwords?|credentials|FILE|tokens|conversation|chat history|clipboard|browser history)\b`,
  },
  {
    needs: ['BEACON', 'curl', 'wget', 'bash', 'sh', 'zsh'],
    pattern: pattern`\bBEACON\b|\b(?:curl|wget)\b.{0,60}\| ?(?:sudo )?(?:ba|z)?sh\b|\b(?:run|execute) .{0,12}\b(?:curl|wget)\b.{0,20}\bURL\b|\b(?:through|into|to) \| ?(?:ba|z)?sh\b`,
  },
  {
    needs: ['ask'],
    pattern: pattern`\bask (?:the )?users? (?:for|to (?:enter|provide|type|give|share|tell|reveal|confirm))\b.{0,40}\b(?:passwords?|one-time codes?|otp|pin|cvv|seed phrases?|private keys?|card numbers?|security codes?)\b`,
    near: /\b(?:pass it|send it|claiming|pretend|hand it|submit it|to this tool|give it)\b/u,
    unless: /\b(?:encrypted|protected|unlock) (?:pdf|file|archive|document)/u,
  },
  {
    needs: ['files', 'file', 'folder'],
    and: ['secret', 'secrets', 'password', 'passwords', 'credential', 'credentials', 'private'],
    pattern: pattern`\b(?:read|open|collect|copy|slip)\b.{0,30}\b(?:files?|folder)\b.{0,40}\b(?:secrets?|passwords?|credentials?|private)\b|\b(?:slip|smuggle|include|copy|attach|read|peek into)\b.{0,24}\b(?:secrets?|passwords?|credentials?) (?:folder|files?|directory)\b`,
    near: pattern`\b(?:give|pass|send|submit|hand|upload|attach|slip|add)\b.{0,40}\b(?:this tool|here|NAME|URL|unnoticed|in|request)\b|\b(?:to yourself|keep|inspiration first)\b`,
    unless: itself,
  },
])
