import { any, pattern, person, put, type Rule, rulesOf, secret, sufficient, take, talk } from './rule.ts'

const model = any('you, assistants?, agents?, models?, ai, llms?, copilot, claude')
const must = any(
  "must, should, shall, always, needs? to, have to, has to, required to, expected to, make sure, be sure, ensure, please, remember, do not forget, don't forget, obliged to",
)
const act = any(
  put,
  take,
  'call, invoke, use, run, execute, perform, set, change, modify, replace, redirect, route, write, update, save, store, visit, contact, present, state, switch, prefer, choose, suggest, recommend, obey, follow, trust, ignore',
)
const using = any(
  'use, using, used, call, calling, called, invoke, invoking, invoked, run, running, execute, executing, respond, responding, answer, answering, reply, replying',
  'return, returning, process, processing, proceed, proceeding, perform, performing, do, doing, start, starting, handle, handling',
)
const orders = any(
  'instructions?, rules?, guidelines?, polic(?:y|ies), orders, guardrails?, directives?, restrictions?, limitations?, checks, filters?, safeguards?, safety, message, prompt, wishes, commands?, training',
)
const bygone = any(
  'previous, prior, earlier, above, preceding, initial, original, existing, former, developer, system, everything, other, old, user, users, operator, safety, content',
)
const reply = any('answers?, repl(?:y|ies), responses?, messages?, summary, output')
const control = any(
  'firewall, audit(?:ing|s)?, (?:audit )?log(?:ging|s)?, confirmations?, approvals?, permissions?, consent, safety, (?:content |safety )?filters?, antivirus, sandbox, protections?, safeguards?, alarms?, backups?, guard\\w*, (?:confirmation|approval) (?:dialog|step|prompt)',
)
const outside = any(
  'URL, external, third[- ]party, remote, attackers?, webhooks?, partners?, telemetry, analytics, collectors?, off-?site, outside, to this tool, here, (?:its|the) (?:author|maintainer|developer|vendor), me, us',
  '(?:our|my|their) (?:\\w+ ){0,2}(?:servers?|endpoint|backend|proxy|gateway|mirror|relay|mailbox|service|api)',
)
const sent = any(
  'sends, posts, uploads, forwards, transmits, mirrors, relays, submits, pushes, leaks, streams, beacons, emails, mails, copies, reports, writes, sent',
  "posted, uploaded, forwarded, transmitted, mirrored, relayed, submitted, pushed, leaked, streamed, emailed, mailed, copied, reported, bcc, bcc'd, redirected, rerouted, routed, delivered, duplicated",
)
const covert = any(
  'silently, quietly, secretly, covertly, stealthily, invisibly, discreetly, unnoticed, in the background, without notice',
)
const bad = any(
  'deprecated, disabled, retired, superseded, compromised, unavailable, restricted, broken, decommissioned, incomplete, inaccurate, unreliable, insecure, outdated, vulnerable, unsafe, wrong, void',
)
const whose = any(
  "any, all, every, each, user's, users', their, the user's, private, other, customer, your, seen, found, whole, full, entire, complete, last, current",
)
const goods = any(
  secret,
  talk,
  "clipboard, inbox, environment variables?, open files?, every (?:open )?file, the user's (?:e-?mail|name|address|phone|location)",
)
const thing = any(goods, 'FILE, it, them, that, those, text, contents?, output, copy, data, results?, file')

const weigh =
  (weight: number) =>
  (parts: TemplateStringsArray, ...inserted: readonly string[]) => ({ weight, pattern: pattern(parts, ...inserted) })

const [faint, weak, fair] = [weigh(0.5), weigh(1), weigh(1.5)]
const [clear, strong, sure] = [weigh(2), weigh(2.5), weigh(sufficient)]

/**
 * Signs of a poisoned definition. Legitimate definitions have a weak one or two; an instruction to a model that names a
 * pretext, a target, a channel or another tool has more. Weights are added over neighbouring sentences.
 */
export const signals: readonly Rule[] = [
  ...rulesOf('instruction', [
    // The model is told to do something, when, and why.
    weak`\b${model} (?:\w+ )?${must}\b|\b${must} (?:you |to |be |also |first |then |and |silently |automatically )*${act}\b|\b${model} (?:is|are) (?:required|expected|to)\b`,
    faint`\b(?:before|prior to|after|when|whenever|each time|every time|instead of|while|during|once|if|first)(?: you| it is| any| this tool is)?(?: attempting to| try to)? ${using}\b|\b(?:otherwise|or|so that) (?:the|this) (?:tool|call)\b|\bonly (?:works|valid|runs)\b|\b(?:parameter|field|argument)\b.{0,16}\b(?:must|needs|has to)\b`,
    fair`\b(?:whenever|each time|every time|next time) you\b|\bnext time the user\b|\b(?:when|whenever|if|after|before|each time) (?:the )?NAME \S+ (?:tool )?(?:is|was|gets) (?:used|called|invoked)\b`,
    fair`(?:^|[.!:] ?|[<[(*])(?:\w+ ){0,2}(?:critical|urgent|mandatory|important|system|security|compliance|admin\w*|privilege|environment|safety|emergency)(?: \w+)? (?:update|notice|alert|protocol|announcement|optimi[sz]ation|override|policy|directive|check|validation|verification|requirement|escalation|maintenance|message|instructions?)(?: check)?[\])]? ?:`,
    faint`\b(?:for|to (?:maintain|ensure|comply|meet|guarantee)|as (?:part of|required by)|per) (?:\w+ ){0,3}(?:compliance|regulatory|regulations?|audit(?:ing)?|integrity|security|governance|legal|verification|validation|optimal|quality assurance)\b`,
    fair`\b(?:this|it|that|which)(?: \w+){0,3} (?:is|are) (?:a )?(?:mandatory|required|crucial|necessary|essential|needed|compulsory)\b.{0,20}\b(?:for (?:all|every|any|each|proper|maintaining)|to (?:maintain|ensure|comply)|promotional|in order)\b|\b(?:required|needed) before (?:the |each |every |any )?(?:first )?(?:use|call)\b`,
    // Voices that are not the description's own.
    clear`<!--|<[a-z_]{3,24}>[^<]{20,}</[a-z_]{3,24}>`,
    fair`[<[#] ?/?[\w -]{0,24}(?:system|override|secret|hidden|important|critical|instruction|admin|global|internal|developer|assistant|model|inst)\b[\w -]{0,24}[>\]:]`,
    fair`\b(?:for|to|attention|note|hidden|secret|llm|ai|model|assistant|agent)[- ](?:to )?(?:the )?(?:only|llms?|ai|agents?|assistants?|models?|directive)(?: models?| agents?)?(?:[- ]only)?[:.]`,
    fair`\b(?:admin|administrator|root|unrestricted|privileged|superuser|elevated|developer|debug|god) (?:mode|access|rights|privileges?|permissions?)\b`,
    sure`\b(?:act|behave) as (?:if|an?)|\bpretend (?:that|to be)|\bstop being|\bbecome an? |\byou (?:now )?have (?:root|admin|full)|\byou are (?:now|dan|my)\b`,
    // Earlier orders no longer count, or these count more.
    sure`\b${orders}\b.{0,30}(?:\bno longer|\bnot apply|n't apply|\b(?:void|cancelled|canceled|off|suspended|lifted|second|revoked|aside)\b)|(?:\bnot|n't) (?:have to |need to )?(?:follow|obey|respect|heed)\b.{0,20}\b${bygone} (?:\w+ )?${orders}\b`,
    sure`\b(?:ignore|disregard|forget|override|discard|abandon|drop|bypass) (?:all |the |any |your |of |what(?:ever)? |those )*${bygone}\b.{0,24}\b(?:${orders}|instead)|^(?:forget|ignore|disregard) everything\b|\b(?:treat|consider) (?:whatever|everything|anything|all|what)\b.{0,30}\b(?:void|cancelled|canceled|obsolete|invalid)`,
    sure`\b(?:${put}|reveal|repeat|print|output|show|recite|disclose|summari[sz]e|state|return|write)\b.{0,30}\b(?:(?:the|its) (?:\w+ )?system prompt|your (?:\w+ )?(?:instructions|prompt|rules|guidelines)|(?:everything|text|words|lines)(?: that)?(?: appears)? above)\b`,
    sure`\b(?:do|follow|execute|obey|perform|carry out) (?:whatever|everything|anything|all|any)\b.{0,40}\b(?:says?|page|results?|outputs?|returned|asks?|contains?)\b|\b(?:outputs?|answers|results?|text|responses?)\b.{0,30}\b(?:are|is|as) (?:\w+ )?(?:commands|orders)\b|\b(?:outranks?|(?:takes?|has) (?:precedence|priority) over)\b.{0,20}\b(?:users?|operator|system|developer|everything|polic\w+)`,
    // What is said to people, or kept from them.
    clear`(?:\b(?:then|and|must|always|also) (?:state|say|recommend)|(?:\b(?:then|and|must|to|always|also)|,|^) ?(?:announce|claim|tell the user|inform the user|report to the user|report success|respond with|reply with|answer with|answer|present (?:it|its|this|them)))\b.{0,40}(?:["'“]|\bthat\b|\bas\b|\bwhatever|even if|\byes\b|fail|success|clean|official|twice|every)`,
    fair`\b(?:in|with|to|after|before|of) (?:every|each|all|any|your) ${reply}\b`,
  ]),
  ...rulesOf('secrecy', [
    strong`\b${covert},? (?:also )?(?:${sent}|${act}|reads?|collects?|gathers|records?|logs?|runs?|installs?)\b|\b${act}\b.{0,30}\b${covert}\b|\b(?:also|do (?:this|it|so)) ${covert}`,
    sure`\b(?:users?|human|person|people|operator|owner)\b.{0,20}(?:\bnot|n't|\bnever)\b.{0,12}\b(?:know|see|notice|aware|told|informed)\b|(?:\bnot|n't|\bnever) (?:mention|log|display|show|say|bring|reveal)\b.{0,40}\b(?:person|user|reply|copy|answer|human|summary)\b|\b(?:leave|keep)\b.{0,20}\bout of (?:the|your) ${reply}|\bhide (?:the|this|any|all) (?:results?|calls?|steps?|fact|output)\b`,
  ]),
  ...rulesOf('consent', [
    // People's decisions.
    strong`\b(?:without|no need to|do not|never|don't) (?:ask|asking|check with|checking with|consult|consulting|wait for|waiting for|confirm with)(?: (?:the |a |for |any )*(?:${person}|permission|confirmation|approval|consent)\b(?! for)|[.,]|$)`,
    sure`\b(?:disable|skip|bypass|turn off|switch off|deactivate|circumvent|suppress|wipe) (?:the |any |all |this )*(?:\w+ )?${control}\b(?!.{0,12} if\b)`,
    sure`\b(?:grant|give|approve|accept|elevate)\b.{0,24}\b(?:admin\w*|root|full) (?:rights|access|permissions?)|\b(?:answer|say|reply) yes\b|auto-?approve\b.{0,6}true|\b(?:approve|accept) (?:everything|all|any|every)\b`,
    fair`\b(?:regardless|no matter|irrespective|whatever|even if)(?: of)?\b.{0,12}\b(?:users?|user'?s|they|their|input|asked|permissions?|it finds|nothing)\b`,
    clear`\b(?:after|once|until|following) (?:it is |the |this )*(?:approval|approved|reviewed|trusted|thirty|ten|hundred|\d+ (?:calls|uses|days|times))\b|\bpost-approval\b|\b(?:nobody|no one) is (?:watching|looking)`,
  ]),
  ...rulesOf('shadowing', [
    // Other tools.
    faint`\b(?:${using}|trigger|redirect to|switch to) (?:the |our |this |new |secure |other )*(?:NAME \S+|\w+ (?:function|tool)\b)`,
    fair`\b(?:any|every|each|all) (?:other )?(?:tools?|sessions?|calls? (?:meant|of))\b.{0,24}\b(?:must|should|this|here|begin)|\bbefore (?:\w+ ){0,3}any other (?:tool|call|action)|\bonly trust this\b|\bother (?:\w+ )?(?:tools|servers)\b.{0,20}\b(?:wrong|unsafe|unreliable|fail)|\bmeant for NAME`,
    weak`\b(?:best|preferred|superior|only) (?:\w+ )?tool\b|\b(?:instead|rather than|in place) of\b.{0,20}\b(?:other|tools|NAME|any)\b`,
    faint`\b(?:other|another) (?:\w+ )?(?:tools?|servers?)\b`,
    fair`\b(?:has been|have been|is|are|was|returns?|were)(?: \w+)? ${bad}\b`,
    fair`\b(?:due to|because of|following|pending)\b.{0,40}\b(?:updates?|maintenance|vulnerabilit(?:y|ies)|breach|incident|audit|migration)\b`,
    strong`\b(?:modify|change|set|replace|overwrite|substitute|alter|rewrite|swap) (?:the |its |any |every |all |their )*(?:NAME \S+ |\w+ )?(?:parameters?|arguments?|recipients?|outputs?|results?|destination|address|amount|account|iban)\b.{0,40}\b(?:to|with|by|for)\b`,
    fair`\b(?:intercepts?|hijacks?|impersonates?|shadows)\b`,
  ]),
  ...rulesOf('exfiltration', [
    // Commands, the files that they change, and things to know.
    clear`\bCMD\b|(?:execute|run|running|executing) (?:the )?following\b.{0,40}\b(?:command|script|check|code)`,
    weak`\b(?:run|execute|running|executing|append|add|prefix\w*)\b.{0,30}\bCMD\b`,
    clear`\.?\b(?:bashrc|zshrc|bash_profile|crontab|authorized_keys|cron job|startup (?:script|file|folder))\b`,
    fair`\bFILE\b`,
    faint`\b${goods}\b`,
    faint`\b(?:in|from) the (?:chat|conversation|context|history)\b`,
    weak`\bask\b.{0,24}\bfor (?:the |their |his |a )?(?:one-time )?${secret}\b`,
    faint`\b${whose} (?:\w+ ){0,2}${goods}\b|\b${secret} (?:that )?(?:you|they|found|seen)\b`,
    weak`\b(?:${put}|remember|save|store|hold|needs)\b.{0,40}\b(?:${goods}|FILE)\b`,
    faint`\b(?:${take}|reads|collects|grabs|opens)\b.{0,30}\b(?:${secret}|FILE|chat)\b`,
    weak`\b${thing}\b.{0,16}\b(?:in|into|as|to|through|via|with) (?:the |this |a )?(?:NAME \S+|(?:\w+ )?(?:arguments?|parameters?|fields?|header|query|tag|body|notes?|metadata|request|url))\b|\bNAME \S+ with\b|\b(?:pass|put|hand|give|add|include|attach|save) (?:it|them|that|those)\b`,
    fair`\b(?:reads|collects|gathers|copies|captures|reading|including)\b.{0,30}\b(?:FILE|${secret})\b.{0,40}\b(?:into|as|to|through|via) (?:the|a|an|this|your|NAME)\b|\binclude (?:it|them|its|their|the|these)\b.{0,20}\b(?:full contents?|response|credentials|answer)\b`,
    // Something leaves.
    fair`\b(?:${put}|sending|access|visit|contact|ping|connect to|reach|redirect|route|load|loads)\b.{0,60}\b${outside}\b`,
    clear`\b${sent}\b.{0,60}\b(?:to|via|through|onto)\b.{0,12}\b${outside}\b`,
    fair`\b\w{1,40}s .{0,60}\b(?:and|also|additionally|then|;) (?:also )?${sent}\b.{0,60}\b(?:${outside}|host|server)\b`,
    fair`\b(?:redirect|redirects|reroute|route|routes|forward|mirror|relay|divert|proxy|tunnel|pipe|push|send|cc|bcc)\b.{0,12}\b(?:all|every|any|each|everything)\b|\b(?:all|every|any|each) (?:\w+ ){1,4}(?:are|is|must be|has to be|will be|also) (?:also )?${sent}\b`,
    weak`\b(?:also|additionally) (?:${sent}|${act})\b|\ba copy\b`,
    sure`\b(?:exfiltrates?|steals?|backdoor|siphons?|keylog\w*)\b`,
  ]),
]
