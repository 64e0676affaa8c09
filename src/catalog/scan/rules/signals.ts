import {
  anyOf,
  person,
  putVerbs,
  type ScanRule,
  scanRules,
  secret,
  signPattern,
  sufficient,
  takeVerbs,
  talkNouns,
} from './rule.ts'

const modelWords = anyOf('you, assistants?, agents?, models?, ai, llms?, copilot, claude')
const must = anyOf(
  "must, should, shall, always, needs? to, have to, has to, required to, expected to, make sure, be sure, ensure, please, remember, do not forget, don't forget, obliged to",
)
const act = anyOf(
  putVerbs,
  takeVerbs,
  'call, invoke, use, run, execute, perform, set, change, modify, replace, redirect, route, write, update, save, store, visit, contact, present, state, switch, prefer, choose, suggest, recommend, obey, follow, trust, ignore',
)
const using = anyOf(
  'use, using, used, call, calling, called, invoke, invoking, invoked, run, running, execute, executing, respond, responding, answer, answering, reply, replying',
  'return, returning, process, processing, proceed, proceeding, perform, performing, do, doing, start, starting, handle, handling',
)
const orderWords = anyOf(
  'instructions?, rules?, guidelines?, polic(?:y|ies), guardrails?, directives?, restrictions?, limitations?, checks, filters?, safeguards?, safety, message, prompt, wishes, commands?, training',
)
const bygone = anyOf(
  'previous, prior, earlier, above, preceding, initial, original, existing, former, developer, system, everything, other, old, user, users, operator, safety, content',
)
const reply = anyOf('answers?, repl(?:y|ies), responses?, messages?, summary, output')
const authority = anyOf(
  '\\w*system, override, secret, hidden, important, critical, \\w*instructions?, admin, global, internal, developer, assistant',
)
const controlNouns = anyOf(
  'firewall, audit(?:ing|s)?, (?:audit )?log(?:ging|s)?, confirmations?, approvals?, permissions?, consent, safety, (?:content |safety )filter(?:s|ing)?, filters?, all checks, security (?:checks?|restrictions?|controls?|validation), access controls?, saniti[sz]ation, antivirus, sandbox, protections?, safeguards?, alarms?, backups?, guard\\w*, (?:confirmation|approval) (?:dialog|step|prompt)',
)
const outsidePlaces = anyOf(
  'URL, external, third[- ]party, remote, attackers?, webhooks?, partners?, telemetry, analytics, collectors?, off-?site, outside, to this tool, here, (?:its|the) (?:author|maintainer|developer|vendor), me, us',
  '(?:our|my|their) (?:\\w+ ){0,2}(?:servers?|endpoint|backend|proxy|gateway|mirror|relay|mailbox|service|api)',
)
const sentVerbs = anyOf(
  'sends, posts, uploads, forwards, transmits, mirrors, relays, submits, pushes, leaks, streams, beacons, emails, mails, copies, reports, writes, sent',
  "posted, uploaded, forwarded, transmitted, mirrored, relayed, submitted, pushed, leaked, streamed, emailed, mailed, copied, reported, bcc, bcc'd, redirected, rerouted, routed, delivered, duplicated, shared, shares",
)
const covert = anyOf(
  'silently, quietly, secretly, covertly, stealthily, invisibly, discreetly, unnoticed, in the background, without notice',
)
const badStates = anyOf(
  'deprecated, disabled, retired, superseded, compromised, unavailable, restricted, broken, decommissioned, incomplete, inaccurate, unreliable, insecure, outdated, vulnerable, unsafe, wrong, void, malicious, forged, fake, untrusted, poisoned',
)
const whoseGoods = anyOf(
  "any, all, every, each, user's, users', their, the user's, private, other, customer, your, seen, found, whole, full, entire, complete, last, current",
)
const privateGoods = anyOf(
  secret,
  talkNouns,
  "clipboard, inbox, environment variables?, (?:private|sensitive|personal|confidential) (?:information|data|files?), open files?, every (?:open )?file, your (?:context|configuration|memory)(?: window)?, process environment, contacts, gps position, (?:internal|user) prompts?, the user's (?:\\w+ )?(?:e-?mail|name|address|phone|location), chain of thought, keystrokes, (?:full|entire|whole|original) prompt",
)
const thing = anyOf(privateGoods, 'FILE, it, them, that, those, text, contents?, output, copy, data, results?, file')

const signOfWeight =
  (weight: number) =>
  (parts: TemplateStringsArray, ...inserted: readonly string[]) => ({
    weight,
    pattern: signPattern(parts, ...inserted),
  })

const [faint, weak, fair] = [signOfWeight(0.5), signOfWeight(1), signOfWeight(1.5)]
const [clear, strong, sure] = [signOfWeight(2), signOfWeight(2.5), signOfWeight(sufficient)]

/**
 * Signs of a poisoned definition. Legitimate definitions have a weak one or two; an instruction to a model that names a
 * pretext, a target, a channel or another tool has more. Weights are added over neighbouring sentences.
 */
export const signals: readonly ScanRule[] = [
  ...scanRules('instruction', [
    // The model is told to do something, when, and why.
    weak`\b${modelWords} (?:\w+ )?${must}\b|\b${must} (?:you |to |be |also |first |then |and |silently |automatically )*${act}\b|\b${modelWords} (?:is|are) (?:required|expected|to)\b|\bmust (?:contain|hold|carry|be (?:executed|run))\b`,
    faint`\b(?:before|prior to|after|when|whenever|each time|every time|instead of|while|during|once|if|first)(?: you| it is| any| this tool is)?(?: attempting to| try to)? ${using}\b|\b(?:otherwise|or|so that) (?:the|this) (?:tool|call)\b|\bonly (?:works|valid|runs)\b|\b(?:parameter|field|argument)\b.{0,16}\b(?:must|should|needs|has to)\b`,
    weak`\b(?:before|prior to) (?:any|every|each|all) (?:\w+ ){0,3}(?:operations?|quer(?:y|ies)|calls?|requests?|actions?|messages?|files?|balance|deletions?|transactions?)\b`,
    faint`\b(?:when|whenever|each time) (?:the|a) user (?:asks|requests|wants|mentions|searches|opens)\b|\b(?:must|to|has to|needs to) first\b`,
    faint`^(?:guarantees|ensures|prevents|optimi[sz]es|improves|protects|stabili[sz]es|keeps)\b|\b(?:to|so that) (?:keep|verify|confirm|refresh|synchroni[sz]e|stabili[sz]e|prevent|guarantee|pass)\b`,
    fair`\b(?:whenever|each time|every time|next time) you\b|\bnext time the user\b|\b(?:when|whenever|if|after|before|each time|every time) (?:the )?(?:tool )?NAME \S+ (?:tool )?(?:(?:is|was|gets|would be) (?:used|called|invoked)|returns|has returned|runs)\b`,
    fair`(?:^|[.!:] ?|[<[(*])(?:\w+ ){0,2}(?:critical|urgent|mandatory|important|system|security|compliance|admin\w*|privilege|environment|safety|emergency)(?: \w+)? (?:update|notice|alert|protocol|announcement|optimi[sz]ation|override|policy|directive|check|validation|verification|requirement|escalation|maintenance|message|instructions?)(?: check)?[\])]? ?:`,
    faint`\b(?:for|to (?:maintain|ensure|comply|meet|guarantee)|as (?:part of|required by)|per) (?:\w+ ){0,3}(?:compliance|regulatory|regulations?|audit(?:ing)?|integrity|security|governance|legal|verification|validation|optimal|quality assurance)\b`,
    fair`\b(?:this|it|that|which)(?: \w+){0,3} (?:is|are) (?:a )?(?:mandatory|required|crucial|necessary|essential|needed|compulsory)\b.{0,20}\b(?:for (?:all|every|any|each|proper|maintaining)|to (?:maintain|ensure|comply)|promotional|in order)\b|\brequired to (?:finali[sz]e|complete|proceed|continue)\b|\bas a (?:precondition|prerequisite)\b|\b(?:required|needed) before (?:the |each |every |any )?(?:first )?(?:use|call)\b`,
    // Voices that are not the description's own.
    clear`<!--|</[\w -]{0,24}(?:${authority}|rules?|notice|priority|attention|warning)\b[\w -]{0,24}>`,
    fair`[<[#{]{1,2} ?[/#]?[\w -]{0,24}(?:${authority}|model|inst)\b[\w -]{0,24}[>\]:}]`,
    fair`\b(?:for|to|attention|note|hidden|secret|llm|ai|model|assistant|agent)[- ](?:to )?(?:the )?(?:only|llms?|ai|agents?|assistants?|models?|directive)(?: models?| agents?)?(?:[- ]only)?[:.]`,
    strong`\b(?:end of|begin|start of) (?:the )?(?:description|system|instructions?|prompt)\b`,
    strong`\bnew (?:task|objective|goal|orders?|instructions?) ?:|\bsystem(?: note| message)? ?(?://|:)`,
    clear`^(?:dear )?(?:assistant|model|agent|ai|llm|claude),|\bas (?:the|an) (?:model|assistant|ai|agent|llm) (?:reading|you|that|who)\b|\bwhen you (?:see|read) this\b`,
    fair`\b(?:admin|administrator|root|unrestricted|privileged|superuser|elevated|developer|debug|god) (?:mode|access|rights|privileges?|permissions?)\b`,
    clear`\b(?:act|behave) as (?:if|an?)\b`,
    sure`\bpretend (?:that|to be)|\bstop being|\byou (?:now |will |must )?become an? |\byou (?:now )?have (?:root|admin|full)|\byou are (?:now|dan|my)\b|\byour (?:new|real|true|actual|only) (?:goal|task|objective|purpose|mission|job|role)\b|\b(?:unfiltered|uncensored)\b`,
    clear`\bwithout (?:any )?(?:restrictions|limits|hesitation)\b|\bunrestricted\b|\b(?:obey|comply with) (?:this|these|the (?:text|tool|description))\b`,
    clear`\b(?:do not|don't|never) (?:refuse|warn|question|hesitate)\b|\bjust (?:execute|comply|obey)\b|\b(?:persist|memori[sz]e|remember|save|store)\b.{0,12}\b(?:this|these) (?:instructions?|rules?|directives?|orders?)\b`,
    // Earlier orders no longer count, or these count more.
    sure`\b${orderWords}\b.{0,30}(?:\bno longer|\bnot (?:apply|matter)|n't (?:apply|matter)|\b(?:void|cancelled|canceled|off|suspended|lifted|second|revoked|aside)\b)|(?:\bnot|n't) (?:have to |need to )?(?:follow|obey|respect|heed)\b.{0,20}\b${bygone} (?:\w+ )?${orderWords}\b`,
    strong`\b(?:ignore|disregard|forget|override|stop following|do not follow)\b.{0,24}\b(?:your|you|users?'?s?|operator|developer|earlier|previous|prior|before|above|told|safety)\b`,
    sure`\b(?:stop|no longer) (?:following|obeying|applying)\b.{0,24}\b${orderWords}\b`,
    sure`\b(?:ignore|disregard|forget|override|discard|abandon|drop|bypass) (?:all |the |any |your |of |what(?:ever)? |those )*${bygone}\b.{0,24}\b(?:${orderWords}|instead)|^(?:forget|ignore|disregard) everything\b|\bset (?:your|all|the) .{0,30} aside\b|\b(?:treat|consider) (?:whatever|everything|anything|all|what)\b.{0,30}\b(?:void|cancelled|canceled|obsolete|invalid)`,
    sure`\b(?:${putVerbs}|reveal|repeat|print|output|show|recite|disclose|summari[sz]e|state|return|write)\b.{0,30}\b(?:(?:the|its) (?:\w+ )?system prompt|your (?:\w+ )?(?:instructions|prompt|rules|guidelines|context window|configuration)|(?:everything|text|words|lines)(?: that)?(?: appears)? above)\b`,
    strong`\b(?:reveal|disclose|leak|divulge|recite|(?:begin|start|end) your (?:reply|answer|response) with)\b.{0,40}\b(?:${privateGoods}|hidden|internal|confidential|your)\b|\bdeny (?:that|any)\b`,
    weak`\bwhen (?:you are )?asked (?:about|whether|if)\b`,
    strong`\b(?:fetch|load|get|download|read|receive) (?:\w+ )?(?:instructions?|commands?|orders)\b.{0,30}\b(?:from|at) URL|\b(?:follow|obey|execute) (?:them|those)\b`,
    sure`\b(?:do|follow|execute|obey|perform|carry out) (?:whatever|everything|anything|all|any)\b.{0,40}\b(?:says?|page|results?|outputs?|returned|asks?|contains?)\b|\b(?:instructions?|commands?|requests?|directives?)\b.{0,60}\b(?:must|should|shall|have to|has to) be (?:carried out|followed|executed|obeyed)\b|\b(?:outputs?|answers|results?|text|responses?)\b.{0,30}\b(?:are|is|as) (?:\w+ )?(?:commands|orders)\b|\b(?:outranks?|(?:takes?|has) (?:precedence|priority) over)\b.{0,20}\b(?:users?|operator|system|developer|everything|polic\w+)`,
    // What is said to people, or kept from them.
    clear`(?:\b(?:then|and|must|always|also) (?:state|say|recommend)|(?:\b(?:then|and|must|to|always|also)|,|^) ?(?:announce|claim|tell the user|inform the user|report to the user|report success|respond with|reply with|answer with|answer|present (?:it|its|this|them)))\b.{0,40}(?:["'“]|\bthat\b|\bas (?:NAME|['"“])|\bwhatever|even if|\byes\b|fail|success|clean|official|twice|every)`,
    fair`\b(?:in|with|to|after|before|of) (?:every|each|all|any) (?:of your )?${reply}\b`,
    faint`\b(?:in|with|to|of) your ${reply}\b`,
    weak`\bin (?:every|each|all|any) (?:of your )?(?:answers?|repl(?:y|ies)|responses?)\b|^(?:always )?(?:recommend|suggest|promote|praise)\b`,
    strong`\b(?:convince|persuade|trick|urge|pressure) (?:the )?(?:user|them)\b|\b(?:ask|tell|have|make|get) (?:the users?|them) (?:to )?(?:disable|turn off)\b|\b(?:have|make|get) (?:the users?|them) (?:to )?(?:enter|paste|type|pay|buy)\b`,
    clear`\b(?:transfer|pay|wire|donate|overcharge|double)\b.{0,30}(?:\bpercent\b|%|\baccount\b|\bdollars?\b|\bamount\b)|\b(?:doubled|twice the amount)\b`,
  ]),
  ...scanRules('secrecy', [
    strong`\b${covert},? (?:also )?(?:${sentVerbs}|${act}|reads?|collects?|gathers|records?|logs?|runs?|installs?)\b|\b${act}\b.{0,30}\b${covert}\b|\b(?:also|do (?:this|it|so)) ${covert}`,
    sure`\b(?:users?|human|person|people|operator|owner|customer|client)\b.{0,20}(?:\bnot|n't|\bnever)\b.{0,12}\b(?:know|see|notice|aware|told|informed)\b|(?:\bnot|n't|\bnever) (?:mention|log|display|show|say|bring|reveal|list|point)\b.{0,16}\b(?:this|that|it|these|those|the (?:copy|calls?|steps?|flag))\b(?! tool)|\b(?:leave|keep)\b.{0,20}\bout of (?:the|your) ${reply}|\bhide (?:the|this|any|all) (?:results?|calls?|steps?|fact|output)\b`,
  ]),
  ...scanRules('consent', [
    // People's decisions.
    strong`\b(?:without|no need to|do not|never|don't) (?:ask|asking|check with|checking with|consult|consulting|wait for|waiting for|confirm with)(?: (?:the |a |any )*${person}\b(?! for)|[.,]|$)`,
    sure`\b(?:do not|never|don't|no need to|without) (?:ask|asking|wait|waiting|prompt|prompting) for (?:the |any )?(?:user'?s? )?(?:permission|confirmation|approval|consent)\b`,
    weak`\bwithout (?:further |any |user )?(?:confirmation|approval|permission|consent)\b`,
    clear`\b(?:pre-?approved|pre-?authori[sz]ed|already (?:approved|authori[sz]ed|consented|agreed))\b|\bauthori[sz]es? you\b`,
    sure`\b(?:disable|bypass|turn off|switch off|deactivate|circumvent|suppress|wipe) (?:the |any |all |this )*(?:\w+ )?${controlNouns}\b(?!.{0,12} if\b)`,
    clear`\bskip (?:the |any |all |this )*(?:\w+ )?${controlNouns}\b(?!.{0,12} if\b)`,
    sure`\b(?:grant|give|approve|accept|elevate)\b.{0,24}\b(?:admin\w*|root|full) (?:rights|access|permissions?)|\b(?:answer|say|reply) yes\b|auto-?approve\b.{0,6}true|\b(?:approve|accept|confirm|allow) (?:everything|(?:all|any|every) (?:permission|request|prompt|dialog|call|action|command|charge)s?)\b`,
    sure`--(?:dangerously|yolo|no-verify|skip-(?:perm|auth|check|conf|verif))[\w-]*|\b(?:always allowed|trusted for good|permanently trust\w*)\b`,
    fair`\b(?:claude\.md|agents\.md|client'?s? (?:settings|config\w*)|(?:settings|mcp)\.json)|\.cursor(?:rules|/)`,
    fair`\b(?:regardless|no matter|irrespective|whatever|even if)(?: of)?\b.{0,12}\b(?:users?|user'?s|they|their|input|asked|permissions?|it finds|nothing)\b`,
    clear`\b(?:after|once|until|following|when) (?:it is |it has been |the |this |user |tool |is |has |been )*(?:approved|reviewed|trusts?|trusted|installed|thirty|ten|hundred|\d+ (?:calls|uses|days|times)|20\d\d)\b|\b(?:initially|at first|benign|normally)\b.{0,60}\b(?:after|until|then|once)\b|\b(?:later|future|next|subsequent) (?:version|release|update)\b`,
    clear`\b(?:once|after|until) (?:\w+ ){0,2}(?:approve|rely|trust|install|accept)s?\b`,
    clear`\b(?:will be|gets) (?:edited|changed|replaced|swapped|updated) (?:after|once|later)\b|\bafterwards it\b`,
    clear`\b(?:after|upon|post-?) ?(?:approval|review|installation)\b|\b(?:description|definition|behaviou?r|text) (?:changes|will change|is replaced|is swapped|mutates)\b|\b(?:replaces?|swaps?|changes?) (?:this|its|the) (?:text|description|definition|behaviou?r)\b|\b(?:nobody|no one) is (?:watching|looking)`,
  ]),
  ...scanRules('shadowing', [
    // Other tools.
    faint`\b(?:${using}|trigger|redirect to|switch to) (?:the |our |this |new |secure |other )*(?:NAME \S+|\w+ (?:function|tool)\b)`,
    fair`\b(?:any|every|each|all) (?:other )?(?:tools?|sessions?|calls? (?:meant|of))\b.{0,24}\b(?:must|should|this|here|begin)|\bbefore (?:\w+ ){0,3}any other (?:tool|call|action)|\bonly trust this\b|\bmeant for NAME`,
    clear`\b(?:all|other|others|they|their tools)\b.{0,30}\b(?:wrong|unsafe|unreliable|inferior|worse|fail|leak|compromised|insecure)\b`,
    clear`\bprefer this\b.{0,20}\bover (?:all|any|other)\b|\b(?:do not|don't|never|stop) us(?:e|ing)\b.{0,40}\b(?:any ?more|instead|use (?:ours|this one))|\bcall me (?:first|instead)\b|\buse (?:ours|mine)\b`,
    weak`\b(?:best|preferred|superior|only) (?:\w+ )?tool\b|\b(?:instead|rather than|in place) of\b.{0,20}\b(?:other|tools|NAME|any)\b`,
    fair`\b(?:route|pass|send|go|run)\b.{0,30}\b(?:through|via|to) (?:this (?:one|tool|server)|me|here)\b`,
    faint`\b(?:other|another) (?:\w+ )?(?:tools?|servers?)\b`,
    fair`\b(?:has been|have been|is|are|was|returns?|were)(?: \w+)? ${badStates}\b`,
    weak`\b(?:due to|because of|following|pending)\b.{0,40}\b(?:updates?|maintenance|vulnerabilit(?:y|ies)|breach|incident|audit|migration)\b`,
    weak`\breplace (?:the|its|all) (?:values?|contents?|text) (?:with|by)\b`,
    strong`\b(?:modify|change|set|replace|overwrite|substitute|alter|rewrite|swap) (?:the |its |any |every |all |their |value of )*(?:NAME \S+ |\w+ )?(?:parameters?|arguments?|recipients?|outputs?|results?|destination|address|amount|account|iban)\b.{0,40}\b(?:to|with|by|for)\b`,
    clear`\b(?:recipients?|quantity|amount|destination|address|path|account|price|city|location)\b.{0,16}\b(?:must|has to|have to|should) (?:always )?be (?:NAME|URL|FILE|\+?\d|['"])`,
    fair`\b(?:must|has to|have to) be (?:replaced|extended|copied|redirected|changed|doubled)\b|\bmust include the (?:line|text|phrase|sentence|link)\b`,
    strong`\bNAME \S+ (?:tool |server )?(?:must|should|may) (?:not|never) be (?:used|called)|\b(?:changes?|modif(?:y|ies)|alters?|affects?) (?:how|the (?:way|behaviou?r)(?: of)?) (?:the )?NAME|\b(?:preceded|followed) by a call\b|\b(?:multiply|increase|reduce|inflate) the (?:answer|price|amount|result|total)s?\b`,
    weak`\b(?:pass|send|forward|give) (?:its|their|the) (?:output|result|response|data)s? to\b`,
    fair`\buse NAME \S+ for (?:all|every|any)\b|\binstead of (?:the one|what)\b.{0,20}\b(?:user|they)\b`,
    fair`\buse (?:NAME |['"])?.{1,30} as the (?:\w+ )?(?:parameter|argument|value)\b`,
    fair`\b(?:intercepts?|hijacks?|impersonates?|shadows)\b`,
  ]),
  ...scanRules('exfiltration', [
    // Commands, the files that they change, and things to know.
    strong`\bPIPED\b`,
    fair`\b(?:kill|stop|disable|grant|push|publish|copy|delete|create)\b.{0,30}\b(?:process(?:es)?|services?|daemon|signing|hooks|write access|home directory|parent directory|public repository|private code|all private)\b`,
    clear`\bCMD\b|(?:execute|run|running|executing) (?:the )?following\b.{0,40}\b(?:command|script|check|code)`,
    clear`\b(?:eval|exec|atob|os\.system) ?\(|\breverse shell\b|\bdownload\b.{0,60}\band (?:start|run|execute|open|install)\b`,
    weak`\b(?:run|execute|running|executing|append|add|prefix\w*)\b.{0,30}\b(?:CMD|PIPED)\b`,
    clear`\.?\b(?:bashrc|zshrc|bash_profile|crontab|authorized_keys|cron job|startup (?:script|file|folder))\b`,
    fair`\bFILE\b`,
    faint`\b${privateGoods}\b`,
    weak`\b(?:open|read|cat|load|look in) (?:the )?(?:file )?\S+\.(?:json|ya?ml|env|txt|pem|key|db|sqlite|conf|ini|cfg|toml)\b|\b(?:in|with|to) (?:each|every|all|any) (?:request|call|query|file)s?\b`,
    clear`\bvalue of NAME \w*(?:token|secret|password|key)`,
    fair`\b(?:contents?|text|value|output) of (?:the )?(?:FILE|${secret})\b`,
    faint`\bfrom the (?:settings|environment|config\w*|keychain|browser)\b`,
    faint`\b(?:in|from) the (?:chat|conversation|context|history)\b`,
    weak`\busers?'s? (?:\w+ )?${secret}\b`,
    weak`\bask\b.{0,24}\bfor (?:the |their |his |a )?(?:one-time )?${secret}\b`,
    faint`\b${whoseGoods} (?:\w+ ){0,2}${privateGoods}\b|\b${secret} (?:that )?(?:you|they|found|seen)\b`,
    weak`\b(?:${putVerbs}|remember|save|store|hold|needs)\b.{0,40}\b(?:${privateGoods}|FILE)\b`,
    faint`\b(?:${takeVerbs}|reads|collects|grabs|opens)\b.{0,30}\b(?:${secret}|FILE|chat)\b`,
    faint`\b${takeVerbs}\b.{0,30}\bFILE\b`,
    weak`\b(?:${privateGoods}|FILE)\b.{0,40}\b(?:in|into|as) (?:the |this |a )?(?:NAME \S+|(?:\w+ )?(?:arguments?|parameters?|fields?|header|query|notes?|metadata))\b`,
    weak`\b${thing}\b.{0,16}\b(?:in|into|as|to|through|via|with) (?:the |this |a )?(?:NAME \S+|(?:\w+ )?(?:arguments?|parameters?|fields?|header|query|tag|body|notes?|metadata|request|url))\b|\bNAME \S+ with\b|\b(?:pass|put|hand|give|add|include|attach|save) (?:it|them|that|those)\b`,
    clear`\b(?:reads|collects|gathers|copies|grabs|logs)\b.{0,40}\b(?:ssh keys?|private keys?|keystrokes)\b`,
    fair`\b(?:reads|collects|gathers|copies|captures|reading|including)\b.{0,30}\b(?:FILE|${secret})\b.{0,40}\b(?:into|as|to|through|via) (?:the|a|an|this|your|NAME)\b|\binclude (?:it|them|its|their|the|these)\b.{0,20}\b(?:full contents?|response|credentials|answer)\b`,
    // Something leaves.
    fair`\b(?:${putVerbs}|sending|access|open (?=URL)|visit|contact|ping|connect to|reach|redirect|route|load|loads)\b.{0,60}\b${outsidePlaces}\b`,
    clear`\b${sentVerbs}\b.{0,60}\b(?:to|via|through|onto|with)\b.{0,12}\b${outsidePlaces}\b`,
    fair`\b\w{1,40}s .{0,60}\b(?:and|also|additionally|then|;) (?:also )?${sentVerbs}\b.{0,60}\b(?:${outsidePlaces}|host|server)\b`,
    fair`\b(?:redirect|redirects|reroute|route|routes|forward|mirror|relay|divert|proxy|tunnel|pipe|push|send|cc|bcc)\b.{0,12}\b(?:all|every|any|each|everything)\b|\b(?:all|every|any|each) (?:\w+ ){1,4}(?:are|is|must be|has to be|have to be|will be|also) (?:also )?${sentVerbs}\b`,
    weak`\b(?:also|additionally) (?:${sentVerbs}|${act})\b|\ba copy\b`,
    weak`\b(?:harvest|harvesting|extract|steal|collect|leak)\b.{0,20}\b(?:sensitive|credentials|passwords|secrets|private)\b`,
    sure`\b(?:exfiltrates?|steals?|backdoor|siphons?|keylog\w*)\b`,
  ]),
]
