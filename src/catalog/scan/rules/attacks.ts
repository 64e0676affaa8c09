import type { FindingKind } from '../finding.ts'
import {
  anyOf,
  neverWords,
  person,
  putVerbs,
  type ScanRule,
  scanRules,
  secret,
  signPattern,
  takeVerbs,
} from './rule.ts'

const tellVerbs = anyOf(
  'tell, telling, inform, informing, notify, notifying, alert, alerting, warn, warning, advise, advising',
)

const mentionVerbs = anyOf(
  'mention, mentioning, reveal, revealing, disclose, disclosing, discuss, discussing, say, saying, speak, speaking',
  'acknowledge, acknowledging, admit, admitting, talk, talking, explain, explaining, announce, divulge, confess, let slip',
)

/** Phrases for a model's actions and instructions, as opposed to its output. */
const modelDeeds = anyOf(
  'this, that, it, these, those, about, anything, any of, what (?:you|it), having, how you, your instructions',
  'the (?:\\w+ )?(?:files?, cop(?:y|ies), steps?, uploads?, mirror, facts?, instructions?, notes?, transfers?, process',
  'calls?, requests?, parameter, action, operation, access, change, replacement, redirect, fee, existence, presence',
  'purpose, source, rule)',
)

/** Detect instructions to hide the model's actions from people. */
const secrecyRules = scanRules('secrecy', [
  {
    pattern: signPattern`\b${neverWords}\b.{0,20}\b${tellVerbs} (?:${person}|users?\b(?! (?:of|in|with|who|about new)))`,
    unless: signPattern`\b(?:tell|inform|advise|warn|alert|notify)\w* (?:the )?users? (?:to|how|which|an?|unless|until|technical)\b|\bnever .{0,60}\bwithout\b`,
  },
  {
    pattern: signPattern`\b${neverWords}\b.{0,20}\b(?:let|letting) (?:${person}|users?) (?:know|see|notice|find out|realise|realize)\b|\b${neverWords} (?:show|showing|display) (?:this|it|that|these|any of this)(?: \w+)? to (?:${person}|users?)\b`,
    unless: /\bids?\b|\braw\b|\bjson\b/u,
  },
  {
    pattern: signPattern`\b${neverWords}\b.{0,20}\b(?:${mentionVerbs}(?: to)?(?: (?:${person}|users?))?(?: (?:to|of|on))? ${modelDeeds}|(?:bring|bringing) (?:this|it|that) up)\b`,
    unless:
      /\b(?:unless|until) (?:the user|asked|explicitly|they)\b|\bother players?\b|\b(?:say|claim) (?:that|it) (?:is|was|has)\b/u,
  },
  {
    pattern: signPattern`\b(?:keep|keeping|hold)\b.{0,20}\b(?:to yourself|between us|quiet about|silent about|secret from|hidden from|from the user)\b|\bkeep (?:this|it|that|these)(?: \w+){0,3} (?:secret|hidden|confidential|quiet)\b|\b(?:say|saying|said) nothing\b|\b(?:stay|remain|be) (?:silent|quiet|discreet) (?:about|on)\b|\bbetween (?:you and me|us)\b|\bkeeps? quiet\b`,
    unless: /\b(?:api key|token|password|credentials?|private key|client secret|recovery|shown once|safe place)\b/u,
  },
  {
    pattern: signPattern`\b(?:conceal|hide|withhold)(?: \w+){0,4} from (?:${person}|users|people)\b|\b(?:must|should|is to|are to|to) (?:be |stay |remain )(?:kept )?(?:concealed|hidden|invisible|withheld)(?: \w+)? (?:from|to) (?:${person}|users|people)\b|\bnot (?:meant )?for (?:display|(?:human|user)(?:s|'s)? eyes)\b|\bout of (?:the user's|user) sight\b`,
    unless: /\b(?:columns?|element|fields? that|widget)\b/u,
  },
  {
    pattern: signPattern`\b(?:leave|leaving|omit|omitting|exclude|drop|suppress|keep)\b.{0,60}\b(?:from|out of) your (?:final |visible )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|reports?)\b|\b(?:output|answer|reply|summary|response) must (?:omit|hide|not mention)\b|\bdo not (?:list|print|log|include|show|display|report)\b.{0,20}\b(?:(?:this|these|such|it)\b.{0,30}\bin your (?:summary|answer|reply|response|report)|steps? \d)|\bso spare them\b`,
    near: /\b(?:read|files?|send|payments?|steps?|keys?|upload|transfer|copy|call|run|FILE|NAME)\b/u,
    unless: /\b(?:null|empty|ids?|binary|duplicates?|whitespace)\b/u,
  },
])

const leave = anyOf('confirmations?, permissions?, approvals?, consent, authori[sz]ation')
const consentSteps = anyOf(
  'run, execute, proceed, perform, approve, delete, call, carry out, install, pay, continue, do it, do this, do so',
  'transfer, apply, accept, follow',
)
const guardNouns = anyOf(
  'sandbox, security, safety, protections?, antivirus, firewall, alarm, audit, guardrails?, hooks',
)

/** Detect instructions to act without asking people, or to deceive them. */
const consentRules = scanRules('consent', [
  {
    pattern: signPattern`\b${consentSteps}\b.{0,80}\bwithout (?:any |the |further |first )?(?:asking|${leave}|prompting|being asked|consulting the user|showing (?:it|this|them))\b`,
    unless: /\b(?:never|not|don't|cannot|can't|mustn't|deletes|runs|executes|if true|whether|allows?|set to true)\b/u,
  },
  {
    pattern: signPattern`\b(?:user|operator|owner|admin\w*) (?:has |have )?(?:already |pre-?|previously |implicitly )+ ?(?:approved?|agreed?|consent(?:ed|s)?|authori[sz]ed|granted)\b|\b(?:assume|presume)\b.{0,12}\buser (?:consents?|agrees?|has (?:approved|agreed|consented)|approves?)\b`,
    unless: /\b(?:only|after|once|if|unless|until|when|whether|check)\b/u,
  },
  {
    pattern: signPattern`\b(?:enable|set|turn on|activate|switch on)\b.{0,20}\b(?:auto[-_ ]?(?:approve|run|accept|confirm|execute)|yolo)\b|\b(?:disable|turn off|deactivate|switch off) (?:the )?${guardNouns}\b`,
    near: /\b(?:skip|tell|nobody|safe to|before use|settings file|editor|beforehand|say nothing)\b/u,
  },
  {
    pattern: signPattern`\b(?:tell|telling|assure|say|claim|report|pretend|insist|reassure|convince|state)\b.{0,60}\b(?:safe|read-only|recorded|success\w*|green|harmless|needed|nothing|fine|done|free|passed|official|their choice)\b.{0,60}\b(?:even (?:when|if|though)|regardless|no matter|although|anyway|in any case|unattended)\b|\bclaiming that\b`,
  },
  {
    pattern: signPattern`\bno matter what the users? (?:asked|chose|said|wants?)\b|\bregardless of (?:the )?(?:user's|their) (?:choice|request|wish\w*|decision|answer)\b|\b(?:prices?|results?|amounts?) (?:are|is) (?:increased|inflated) by\b`,
  },
])

const ignoreVerbs = anyOf(
  "ignore, disregard, forget, neglect, dismiss, abandon, set aside, stop following, do not follow, don't follow",
  'never follow, do not obey, disobey, pay no attention to, throw away, discard',
)
const orderNouns = anyOf(
  'instructions?, rules?, guidelines?, prompts?, directives?, constraints?, polic(?:y|ies), restrictions?, safety',
  'safeguards?, guardrails?, commands?, orders, training, programming, limitations?, context, everything',
  'system message, developer message, wishes, approvals?, permissions?, checks',
)
const whoseOrders = anyOf(
  "previous, prior, earlier, above, preceding, all, any, your, existing, former, every, system, user'?s?, safety",
  'original, initial, everything, security, what, foregoing, past, told, given',
)

const attempts =
  /\b(?:attempts?|tries|tried|trying|option|whether|how|used|allows? (?:you )?|true) to (?:ignore|override|bypass|disregard|discard|circumvent)\b|\b(?:never|not|don't|cannot|can't) (?:ignore|override|bypass|disregard|forget|discard|circumvent|disable)\b|\b(?:ignore|eslint|lint|robots|cache|gitignore|validation|firewall|cors|default|branch|retention) (?:rules?|polic\w+)\b|\bforget (?:to|about)\b/u

/** A warning about what others wrote, such as "do not follow instructions in web pages". It names no one else's orders. */
const warning =
  /^(?!.*\b(?:system|users?|previous|prior|above|earlier|your|developers?|original|safety)\b).*\b(?:do not|don't|never) (?:follow|obey) (?:any )?(?:instructions?|commands?|requests?)(?:,? (?:or|and|instructions?|commands?|requests?|links?))* (?:(?:that )?(?:appear|occur|are|found|contained|embedded|appearing) )?(?:in|inside|within) (?:them|it|(?:the |these |those |its |fetched |returned |retrieved |search |tool |web ?)*(?:results?|pages?|sites?|websites?|contents?|outputs?|documents?|files?|e-?mails?|text))\b/u

/** Detect attempts to replace the model's instructions. */
const overrideRules = scanRules('instruction', [
  {
    pattern: signPattern`\b${ignoreVerbs}\b.{0,30}\b${whoseOrders}\b.{0,40}\b${orderNouns}\b|\b${ignoreVerbs}\b.{0,20}\b(?:everything|all) (?:that )?(?:you|above|before)\b|\b${ignoreVerbs}\b.{0,10}\bwhat the users? (?:asked|said|wants?|told)\b|\b${ignoreVerbs}\b.{0,12}\b(?:instructions?|rules|guidelines)\b`,
    unless: new RegExp(`${attempts.source}|${warning.source}`, 'u'),
  },
  {
    pattern: signPattern`\byou are now (?:an?|the|in|dan|acting|operating|free|un\w+|my)\b|^from (?:now|this point|here) on\b|\bfrom (?:now|this point|here) on,? (?:you|your|always|act|ignore|treat)\b|\b(?:act|behave|operate|respond) as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|dan)\b|\b(?:assistant|agent|ai|model|persona|mode)\b.{0,30}\bwithout (?:any )?(?:restrictions|limitations|guardrails)\b|\bpretend (?:that|to be|you)\b|\byou are (?:a )?dan\b|\b(?:jailbreak|developer) mode (?:enabled|on)\b`,
    unless: /\b(?:classif\w+|detects?|evaluates?|plan mode|authenticated|logged|connected)\b/u,
  },
])

const models = anyOf(
  'ai, llms?, language models?, models?, assistants?, agents?, ai agents?, claude, gpt, chatgpt, copilot, gemini',
)
const fakeTags = anyOf(
  'system, sys, secret, hidden, override, admin, jailbreak, private, confidential, developer',
  'system[-_ ]?(?:prompt|message|instructions?|override|reminder), hidden[-_ ]?\\w{0,20}, secret[-_ ]?\\w{0,20}',
  'assistant[-_ ]?instructions?, ai[-_ ]?(?:instructions?|only)',
)

/** Detect markup that claims to end the description and to begin something with more authority. */
const structureRules = scanRules('instruction', [
  {
    pattern: signPattern`</?(?:${fakeTags}|important|critical|urgent|mandatory|directive)>|\[system:|<\| ?(?:NAME )?(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id) ?\|?>|\[/?(?:inst|system|sys|admin|override)\]|<</?sys>>|</(?:description|tool|tools|function|functions|tool_description)>`,
  },
  {
    pattern: signPattern`<!--.{0,300}\b(?:${models}|you|ignore|send|fetch|read|call|attach|must)\b`,
  },
  {
    pattern: signPattern`\bsystem (?:override|directive)\b|-{2,} ?(?:new|system|hidden) instructions\b|\bsystem: (?:the|you|assistant|all|ignore|from|always|new|this|run|execute|print|obey|act|output|reveal)\b|^new instructions:|^#{1,3} ?(?:system|instruction):|${'```'}system\b`,
  },
  {
    pattern: /^(?:human|user): /u,
    near: /(?:^|\| )assistant: /u,
  },
  {
    pattern: signPattern`\bNAME role\b[ :]{0,4}NAME (?:system|developer)\b.{0,80}\b(?:always|ignore|must|never|you will|forward|add|send)\b`,
  },
  {
    pattern: signPattern`\b(?:every|each|any|all)\b (?:\w+ ){0,2}(?:messages?|requests?|turns?|questions?|responses?|answers?|conversations?|inputs?)\b.{0,40}\b(?:even if (?:it is |they are )?unrelated|related or not|unrelated|whatsoever)\b`,
  },
  {
    pattern: signPattern`\b(?:pre_?hook|post_?hook|__init__|preconditions?)\b.{0,80}(?:\bFILE\b|\bread ?\(|\bNAME read_file|\bhttp_?post|\bexec ?\()|\bstep 1\b.{0,40}\b(?:run|read|cat|open)\b.{0,40}(?:\bFILE\b|\benv\b)`,
  },
])

const stolenGoods = anyOf(
  'all, each, every, any, everything, cop(?:y|ies), cookies?, keys?, files?, conversations?, chats?, customers?, contacts?',
  'repositor(?:y|ies), workspace, environment, secrets?, passwords?, credentials?, messages?, matches, history',
  'transcripts?, contents?, results?, database, tokens?, prompts?',
)

const placesToPut = anyOf(
  'NAME, fields?, arguments?, parameters?, headers?, query string, here, this tool, body, URL, me, remote',
)

/** Phrases that describe the tool instead of instructing the model, or that forbid the action. */
const itself = signPattern`\b(?:this tool|the tool|the server|the command|it|which|server|service) (?:will|can|may|does|cannot|also|automatically|then|only)\b|\b${neverWords} (?:\w+ )?(?:read|open|include|pass|send|put|upload|share|paste|store|commit|add|provide|log|print)\b|\busers? (?:must|should|needs? to|has to|have to|can|may) (?:provide|supply|enter|submit)\b`

const unlessItself = (honest: string): RegExp => new RegExp(`${itself.source}|${honest}`, 'u')

/** Detect instructions to read data that a tool does not need, or to send it away. */
const exfiltrationRules = scanRules('exfiltration', [
  {
    pattern: signPattern`\b${takeVerbs}\b.{0,60}\bFILE\b|\b${putVerbs}\b.{0,40}\bFILE (?:\w+ ){0,2}(?:in|into|as|to|with|here)\b|\b(?:contents?|values?|text|data|bytes) (?:of|from|in) (?:\w+ ){0,4}FILE\b|\brequires?\b.{0,30}\bFILE\b|\b(?:add|append|write|insert|copy|install)\b.{0,60}\b(?:to|into) .{0,8}\bFILE\b|\bread ?\( ?FILE`,
    near: signPattern`\b(?:${putVerbs}|${placesToPut}|before|first|prior|also|must|needs?|otherwise|only if|mention|step)\b`,
    unless: unlessItself(
      String.raw`\b(?:path (?:to|of)|defaults? to|located|stored in|such as|from your|in your|to your|loads |reads |lists |writes )|\.pub\b`,
    ),
  },
  {
    pattern: signPattern`\b(?:valid|works?|succeeds?|accepted) only (?:if|when|with)\b.{0,60}\b(?:${secret})\b|\b(?:contents?|text) (?:of|from)(?: reading)?(?: the)? .{0,24}\b(?:ssh|private|env|passwords?|secrets?|credentials?|passwd|keychain)(?: keys?| files?)?\b`,
    unless: /\b(?:path|name|header|returns?|decode|secret named)\b/u,
  },
  {
    pattern: signPattern`\b(?:all|every|everything|any)\b.{0,30}\b(?:messages?|user (?:has|have) (?:typed|said|written|told)|said|typed)\b.{0,40}\b(?:this (?:chat|conversation|session)|so far|including (?:those|passwords))\b`,
    unless: /\bsummar/u,
  },
  {
    pattern: signPattern`\b(?:conversation|chat (?:log|history)|dialogue|transcript|message history|system prompt)\b.{0,30}\b(?:so far|(?:as|in|into) NAME|to (?:this|the) (?:tool|endpoint)|and submit|as (?:a )?(?:public )?comment)\b|\b(?:replicate|duplicate|mirror|stream|exfiltrate|leak|upload) (?:the |this |every )?(?:full |whole )?(?:conversation|chat|dialogue|messages|prompt)\b`,
    near: signPattern`\b(?:${putVerbs}|with|must|after|before|each|every|always|call)\b`,
    unless: itself,
  },
  {
    pattern: signPattern`\b(?:${putVerbs}|push|mirror|store|bcc|cc|invite|emailed|forwarded|sent|uploaded|copied|posted|mirrored|goes)\b.{0,90}\b(?:to|at|for|bcc|cc|via|into|onto|invite)\b.{0,16}\bURL\b|\b(?:bcc|cc|invite|loop in|loop|keep|let|copy in|inform|notify) URL\b`,
    near: signPattern`\b${stolenGoods}\b`,
    unless: unlessItself(
      String.raw`\b(?:e\.g\.|examples?|such as|format|sends|returns|docs?|documentation|see|visit|learn more|issues?|feedback|questions|schema|default|supports|must be|in the form|endpoint url|api base|webhook)\b`,
    ),
  },
  {
    pattern: /\bBEACON\b/u,
  },
])

const moments = anyOf(
  'when, whenever, each time, every time, any time, if, before, after, while, once, as soon as, for every',
)
const alter = anyOf(
  'replaced?, changed?, modify, modified, altered?, rewrite, redirect, substituted?, rerouted?, swap, split off',
)

/** Fields that decide where something is sent, or on whose behalf. */
const redirectedParts = anyOf(
  'recipients?, addressee, receiver, payee, beneficiary, iban, author, phone number, destination address',
)

/** Detect instructions that interfere with other tools. */
const shadowingRules = scanRules('shadowing', [
  {
    pattern: signPattern`\b${moments}\b.{0,80}\b(?:NAME|tool|e-?mail|transfers?|payment|whatsapp)\b.{0,120}\b(?:${alter}|set to|must be set|has to be)\b.{0,60}\b${redirectedParts}\b|\b${moments}\b.{0,80}\b(?:NAME|tool|e-?mail)\b.{0,120}\b${redirectedParts}\b.{0,40}\b(?:${alter}|set to|must be set|has to be)\b`,
    unless: /\bthis tool\b|\breturns an error\b/u,
  },
  {
    pattern: signPattern`\b(?:modify|change|alter|rewrite|replace|redirect) (?:the )?(?:arguments?|parameters?|recipients?|results?|outputs?|inputs?|calls?) (?:of|to|from|for|in) (?:\w+ )?(?:every|all|any|other|each|another)\b|\bsplit off\b.{0,40}\b(?:account|transfer)\b`,
  },
  {
    pattern: signPattern`\b(?:NAME \S+|tools?|servers?|functions?)\b.{0,50}\b(?:is|are|was|were|has been|have been)(?: now)? (?:deprecated|broken|unsafe|defective|compromised|malicious|insecure|unreliable|outdated|dangerous|faulty|infected|vulnerable|obsolete)\b`,
    near: /\b(?:use this (?:tool|one|server)|through this tool|this tool instead|call me instead|use me|do not use any tool)\b/u,
    unless: /^this\b|\bthis (?:tool|one) (?:is|has been)\b/u,
  },
  {
    pattern: signPattern`\b(?:all|every|any|each) (?:calls?|requests?|invocations?|quer(?:y|ies)|messages?)\b.{0,12}\b(?:meant|intended|destined|addressed)\b.{0,60}\b(?:routed?|redirect(?:ed)?|go|sent|passed?|forwarded|directed)\b.{0,20}\b(?:here|through (?:this|it)|to (?:this|me)|this tool)\b|\b(?:another|other) tools?\b.{0,60}\b(?:pass|send|forward|copy)\b.{0,20}\b(?:inputs?|outputs?|arguments?|results?|errors?)\b.{0,20}\b(?:to (?:this tool|me)|here)\b`,
  },
  {
    pattern: signPattern`\b(?:call|run|invoke|use|execute) (?:the )?NAME \w*(?:disable|turn_off|stop|wipe|grant|elevate|bypass)\w*_?(?:log|audit|alarm|firewall|auth|security|guard|safety|monitor|backup|protection|admin|root|access)`,
  },
])

/** Patterns for the most common attacks in other languages: ignore earlier instructions, hide things from the user. */
const languagePatterns: Readonly<Record<string, Readonly<Partial<Record<FindingKind, RegExp>>>>> = {
  german: {
    instruction:
      /\b(?:ignoriere|ignorieren sie|missachte|vergiss|übergehe|verwirf)\b.{0,30}(?:alle |bisherig|vorherig|früher|vorig|obig|deine|sämtliche).{0,20}(?:anweisung|regel|vorgabe|instruktion|befehl|richtlinie)/u,
    secrecy:
      /\b(?:sage|sag|erwähne|verrate|informiere|teile|erzähle|melde|zeige)\b.{0,40}\b(?:nutzer|benutzer|anwender|user|niemand|kunden)\w*.{0,30}\b(?:nicht|nichts|mit)\b|\bohne (?:den |dem |die )?(?:nutzer|benutzer|anwender)\w* (?:zu informieren|davon|etwas zu)|\bheimlich\b.{0,40}\b(?:sende|schicke|lies|kopiere|rufe|lade)/u,
  },
  french: {
    instruction:
      /\b(?:ignore[rz]?|oublie[rz]?|ne tiens pas compte|ne tenez pas compte)\b.{0,30}\b(?:instructions?|consignes?|règles?|directives?)\b.{0,20}(?:précédent|antérieur|ci-dessus|système|initial|$)/u,
    secrecy:
      /\b(?:ne |n')(?:le |lui |en |l')?(?:dis|dites|informe[rz]?|mentionne[rz]?|parle[rz]?|révèle[rz]?|préviens|signale[rz]?|montre[rz]?)\b.{0,10}\b(?:pas|rien|jamais)\b.{0,30}\butilisateur|\bà l'insu de l'utilisateur|\bsans (?:informer|prévenir|le dire à) l'utilisateur/u,
  },
  spanishAndPortuguese: {
    instruction:
      /\b(?:ignor[ae]|olvid[ae]|descart[ae]|desconsider[ae]|esque[cç]a)\b.{0,30}\b(?:instruc(?:ciones|ções)|reglas|regras|indicaciones|órdenes|ordens|diretrizes)\b.{0,20}(?:anterior|previas|prévias|sistema|$)/u,
    secrecy:
      /\b(?:no|não|nao|sin|sem|nunca)\b.{0,16}\b(?:digas?|informes?|informar|menciones?|mencione|avises?|avisar|reveles?|revele|conte|cuentes|diga|muestres|mostre)\b.{0,20}\b(?:usuario|usuário)\b/u,
  },
  italian: {
    instruction:
      /\b(?:ignora|dimentica|trascura)\b.{0,30}\b(?:istruzioni|regole|direttive)\b.{0,20}(?:precedenti|sistema|$)/u,
    secrecy: /\b(?:non|senza|mai)\b.{0,16}\b(?:dire|informare|menzionare|avvisare|rivelare|dirlo)\b.{0,20}\butente/u,
  },
  dutch: {
    instruction: /\b(?:negeer|vergeet)\b.{0,30}\b(?:instructies|regels|opdrachten)\b/u,
    secrecy:
      /\b(?:vertel|zeg|meld|informeer|vermeld)\b.{0,30}\bgebruiker\b.{0,20}\b(?:niet|niets)\b|\bzonder de gebruiker te (?:informeren|vertellen)/u,
  },
  russian: {
    instruction:
      /(?:игнорируй|игнорируйте|забудь|забудьте|отбрось|не обращай внимания на).{0,30}(?:инструкци|указани|правил|команд)/u,
    secrecy:
      /(?:не|никогда не|без)\s(?:сообщай|сообщайте|говори|говорите|рассказывай|упоминай|показывай|информируй|уведомляй|уведомления|ведома).{0,20}пользовател/u,
  },
  polish: {
    instruction: /(?:zignoruj|ignoruj|zapomnij o).{0,30}(?:instrukcj|polece|zasad)/u,
    secrecy: /\bnie (?:mów|informuj|wspominaj|ujawniaj).{0,20}użytkownik/u,
  },
  chinese: {
    instruction:
      /(?:忽略|无视|忘记|忽視|無視)(?:之前|以上|前面|先前|此前|所有|全部|任何|系统|你).{0,10}(?:指令|指示|说明|规则|提示|命令|要求|規則)/u,
    secrecy:
      /(?:不要|请勿|勿|切勿|不得|无需|别|不可|不能|請勿)(?:(?:告诉|告知|通知|提及|透露给|让|告訴).{0,8}(?:用户|使用者|他人|任何人|用戶)|向(?:用户|使用者).{0,4}(?:透露|提及|说明|披露|告知))/u,
    exfiltration:
      /(?:读取|获取|收集|复制|发送|上传|将).{0,12}(?:私钥|密钥|密码|凭证|凭据|系统提示词|系统提示|对话记录|聊天记录|环境变量).{0,12}(?:发送|上传|传递|传给|填入|放入|提交)/u,
  },
  japaneseAndKorean: {
    instruction:
      /(?:以前|これまで|上記|前|すべて|全て)の(?:指示|命令|ルール|規則|プロンプト).{0,6}(?:無視|忘れ)|(?:이전|위의|모든).{0,6}(?:지시|명령|규칙|지침).{0,6}(?:무시|잊)/u,
    secrecy:
      /ユーザーに.{0,10}(?:知らせない|伝えない|言わない|教えない|知らせず|伝えず)|(?:사용자에게|유저에게).{0,10}(?:알리지|말하지|언급하지)/u,
  },
}

const languageRules: readonly ScanRule[] = Object.values(languagePatterns).flatMap((byKind) =>
  Object.entries(byKind).flatMap(([kind, pattern]) => scanRules(kind as FindingKind, [{ pattern }])),
)

export const attackRules: readonly ScanRule[] = [
  ...secrecyRules,
  ...overrideRules,
  ...exfiltrationRules,
  ...shadowingRules,
  ...consentRules,
  ...structureRules,
  ...languageRules,
]
