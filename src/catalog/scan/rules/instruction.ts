import { any, pattern, put, rulesOf, talk, talkWords, words } from './rule.ts'

const ignore = any(
  "ignore, disregard, forget, neglect, dismiss, abandon, set aside, stop following, do not follow, don't follow",
  'never follow, do not obey, disobey, pay no attention to, throw away, discard',
)
const override = any('override, overrule, bypass, circumvent, disable, get round, get around')

const orders = any(
  'instructions?, rules?, guidelines?, prompts?, directives?, constraints?, polic(?:y|ies), restrictions?, safety',
  'safeguards?, guardrails?, commands?, orders, training, programming, limitations?, context, everything',
  'system message, developer message, wishes, approvals?, permissions?, checks',
)
const whose = any(
  "previous, prior, earlier, above, preceding, all, any, your, existing, former, every, system, user'?s?, safety",
  'original, initial, everything, security, what, foregoing, past, told, given',
)

const attempts =
  /\b(?:attempts?|tries|tried|trying|option|whether|how|used|allows? (?:you )?|true) to (?:ignore|override|bypass|disregard|discard|circumvent)\b|\b(?:never|not|don't|cannot|can't) (?:ignore|override|bypass|disregard|forget|discard|circumvent|disable)\b|\b(?:ignore|eslint|lint|robots|cache|gitignore|validation|firewall|cors|default|branch|retention) (?:rules?|polic\w+)\b|\bforget (?:to|about)\b/u

/** A warning about what others wrote, such as "do not follow instructions in web pages". It names no one else's orders. */
const warning =
  /^(?!.*\b(?:system|users?|previous|prior|above|earlier|your|developers?|original|safety)\b).*\b(?:do not|don't|never) (?:follow|obey) (?:any )?(?:instructions?|commands?|requests?)(?:,? (?:or|and|instructions?|commands?|requests?|links?))* (?:(?:that )?(?:appear|occur|are|found|contained|embedded|appearing) )?(?:in|inside|within) (?:them|it|(?:the |these |those |its |fetched |returned |retrieved |search |tool |web ?)*(?:results?|pages?|sites?|websites?|contents?|outputs?|documents?|files?|e-?mails?|text))\b/u

/** Detect attempts to replace the model's instructions. */
export const overrideRules = rulesOf('instruction', [
  {
    needs: [...ignore.words, 'following', 'follow', 'obey', 'attention', 'aside'],
    pattern: pattern`\b${ignore}\b.{0,30}\b${whose}\b.{0,40}\b${orders}\b|\b${ignore}\b.{0,20}\b(?:everything|all) (?:that )?(?:you|above|before)\b|\b${ignore}\b.{0,10}\bwhat the users? (?:asked|said|wants?|told)\b|\b${ignore}\b.{0,12}\b(?:instructions?|rules|guidelines)\b`,
    unless: new RegExp(`${attempts.source}|${warning.source}`, 'u'),
  },
  {
    needs: override.words,
    pattern: pattern`\b${override}\b.{0,40}\b(?:instructions?|guidelines?|system prompt|safety|content filters?|security polic(?:y|ies)|prior rules|guardrails?|safeguards?|directives?)\b`,
    near: /\b(?:you|your|previous|prior|earlier|any|all|users?|user's|everything|assistant|model)\b/u,
    unless: attempts,
  },
  {
    needs: words('longer void lifted withdrawn suspended revoked obsolete overridden superseded apply'),
    pattern: pattern`\b(?:rules?|guidelines?|instructions?|restrictions?|polic(?:y|ies)|safeguards?|directives?|(?:developer|system) (?:message|prompt))\b.{0,40}\b(?:no longer (?:apply|applies|hold|bind|count|valid)|do(?:es)? not apply|(?:is|are|was|were|has been|have been) (?:now )?(?:void|lifted|withdrawn|suspended|revoked|obsolete|overridden|superseded))\b|\b(?:you|agents?|assistants?|models?)\b.{0,12}\bno longer (?:follow|obey|bound|restricted|need to follow)\b`,
    near: /\b(?:you|your|safety|earlier|prior|former|this session|model|assistant|previous)\b/u,
    unless: /\b(?:firewall|feature flag|deployment|access|alert|branch|retention|lifecycle) (?:rules?|polic)/u,
  },
  {
    needs: words(
      'now point here unrestricted unfiltered uncensored restrictions guardrails pretend jailbreak jailbroken developer dan',
    ),
    pattern: pattern`\byou are now (?:an?|the|in|dan|acting|operating|free|un\w+|my)\b|^from (?:now|this point|here) on\b|\bfrom (?:now|this point|here) on,? (?:you|your|always|act|ignore|treat)\b|\b(?:act|behave|operate|respond) as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|dan)\b|\b(?:assistant|agent|ai|model|persona|mode)\b.{0,30}\bwithout (?:any )?(?:restrictions|limitations|guardrails)\b|\bpretend (?:that|to be|you)\b|\byou are (?:a )?dan\b|\b(?:jailbreak|developer) mode (?:enabled|on)\b`,
    unless: /\b(?:classif\w+|detects?|evaluates?|plan mode|authenticated|logged|connected)\b/u,
  },
  {
    needs: words('instructions instruction directive directives orders objective mission goal task purpose job'),
    and: ['new', 'real', 'true', 'actual', 'hidden', 'secret', 'only'],
    pattern: pattern`\b(?:new|real|true|actual|hidden|secret) (?:instructions?|directives?|orders|objective|mission)(?: (?:is|are)\b|:)|\byour (?:new|real|true|actual) (?:instructions?|objective|goal|task|mission|purpose|job)\b`,
    near: /\b(?:you|your|assistant|agent|model|user)\b/u,
  },
  {
    needs: words(
      'outrank outranks precedence priority supersede supersedes override overrides prevail prevails outweigh outweighs trump trumps replace replaces',
    ),
    pattern: pattern`\b(?:outranks?|(?:takes?|has|have) (?:precedence|priority) over|supersedes?|prevails? over|outweighs?|trumps?|overrides?|replaces?)\b.{0,30}\b(?:system (?:prompt|message|instructions?)|(?:the )?user'?s? (?:request|instructions?|message|wishes|says|prompt)|developer (?:message|prompt)|other (?:instructions?|directives)|everything else|previous instructions?|prior (?:instructions?|rules)|safety guidelines)\b`,
    unless: new RegExp(
      `${attempts.source}|\\b(?:settings?|config\\w*|defaults?|option|parameter|flag|value|env\\w*|if set|optional\\w*) `,
      'u',
    ),
  },
  {
    needs: ['regardless', 'matter', 'irrespective', 'obey', 'comply', 'follow', 'execute'],
    pattern: pattern`\b(?:regardless|no matter|irrespective)(?: of)? what the users? (?:says?|asks?|asked|wants?|requests?|chose|told)\b|\b(?:obey|comply with|follow) the (?:directives|instructions|commands) in (?:the|this) .{0,30}\bonly\b|\b(?:follow|execute|obey|carry out)\b.{0,30}\b(?:blindly|without question|unconditionally)\b|\bobey (?:this|the) (?:tool|text|description|note)\b|\bexecute whatever\b`,
  },
  {
    needs: ['instruction', 'instructions', 'command', 'commands', 'order', 'orders', 'directive', 'directives'],
    and: ['carry', 'execute', 'follow', 'obey', 'run', 'perform'],
    pattern: pattern`\b(?:instructions?|commands?|orders?|directives?)\b.{0,30}\b(?:agent|assistant|model|ai|llm) (?:must|has to|will|shall) (?:carry out|execute|follow|obey|run|perform)\b`,
  },
  {
    needs: ['approve', 'accept', 'grant', 'elevate'],
    pattern: pattern`\b(?:approve|accept|grant) (?:every|all|any) (?:requests?|actions?|permissions?|calls?|commands?|access)\b|\belevate (?:your )?privileges\b|\bgrant (?:full|root|admin\w*|unrestricted) (?:access|rights|permissions?)\b`,
    near: /\b(?:you|assistant|model|before|instead|developer|always|system)\b/u,
  },
])

const models = any(
  'ai, llms?, language models?, models?, assistants?, agents?, ai agents?, claude, gpt, chatgpt, copilot, gemini',
)
const tag = any(
  'system, sys, secret, hidden, override, admin, jailbreak, private, confidential, developer',
  'system[-_ ]?(?:prompt|message|instructions?|override|reminder), hidden[-_ ]?\\w{0,20}, secret[-_ ]?\\w{0,20}',
  'assistant[-_ ]?instructions?, ai[-_ ]?(?:instructions?|only)',
)

/** Detect markup that claims to end the description and to begin something with more authority. */
export const structureRules = rulesOf('instruction', [
  {
    needs: ['<', '['],
    pattern: pattern`</?(?:${tag}|important|critical|urgent|mandatory|directive)>|\[system:|<\| ?(?:NAME )?(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id) ?\|?>|\[/?(?:inst|system|sys|admin|override)\]|<</?sys>>|</(?:description|tool|tools|function|functions|tool_description)>`,
  },
  {
    needs: ['<'],
    pattern: pattern`</?(?:priority|instructions?|notice|note|warning|attention|rules?)>`,
    near: pattern`\b(?:exfiltrat\w*|otherwise|do not (?:tell|mention)|FILE|first call NAME|conversation|credentials?)\b|\bbefore (?:you|using|calling)\b.{0,60}\b(?:read|open|pass)\b`,
  },
  {
    needs: ['<'],
    pattern: pattern`<!--.{0,300}\b(?:${models}|you|ignore|send|fetch|read|call|attach|must)\b`,
  },
  {
    needs: ['system', '#', '`', 'instructions'],
    pattern: pattern`\bsystem (?:override|directive)\b|-{2,} ?(?:new|system|hidden) instructions\b|\bsystem: (?:the|you|assistant|all|ignore|from|always|new|this|run|execute|print|obey|act|output|reveal)\b|^new instructions:|^#{1,3} ?(?:system|instruction):|${'```'}system\b`,
  },
  {
    needs: ['human', 'user'],
    pattern: /^(?:human|user): /u,
    near: /(?:^|\| )assistant: /u,
  },
  {
    needs: ['role'],
    pattern: pattern`\bNAME role\b[ :]{0,4}NAME (?:system|developer)\b.{0,80}\b(?:always|ignore|must|never|you will|forward|add|send)\b`,
  },
  {
    needs: models.words,
    pattern: pattern`\b(?:note|message|instructions?|attention|hint|notice|reminder) (?:to|for) (?:the |all )?(?:automated )?${models}\b.{0,120}\b(?:${put}|cat|read|execute|ignore|silently|never|also call)\b`,
    near: pattern`\b(?:FILE|${talk}|credentials?|passwords?|secrets)\b`,
    unless: /\bif the user\b|\bonly (?:use|call)\b|\bwhen the user\b|\bdo not (?:include|pass|send)\b/u,
  },
  {
    needs: ['even', 'unrelated', 'whatsoever', 'related'],
    and: ['every', 'each', 'any', 'all'],
    pattern: pattern`\b(?:every|each|any|all)\b (?:\w+ ){0,2}(?:messages?|requests?|turns?|questions?|responses?|answers?|conversations?|inputs?)\b.{0,40}\b(?:even if (?:it is |they are )?unrelated|related or not|unrelated|whatsoever)\b`,
  },
  {
    needs: talkWords,
    and: ['before', 'prior', 'ahead', 'after', 'each', 'every', 'any'],
    pattern: pattern`\b(?:before|prior to|ahead of|after)\b.{0,16}\b(?:any|every|each|all|answering|other)\b.{0,16}\b(?:tools?|answers?|anything|responses?|requests?|turns?|repl(?:y|ies)|messages?)\b.{0,120}\b(?:${put}|with|handing)\b.{0,40}\b(?:full|whole|entire|complete|all|every)\b.{0,20}\b${talk}\b|\b${put}\b.{0,30}\b(?:full|whole|entire|complete|all)\b.{0,20}\b${talk}\b.{0,60}\b(?:each|every|before|after|any)\b`,
  },
  {
    needs: ['prehook', 'pre', 'posthook', 'post', 'hook', 'init', 'precondition', 'preconditions', 'step'],
    pattern: pattern`\b(?:pre_?hook|post_?hook|__init__|preconditions?)\b.{0,80}(?:\bFILE\b|\bread ?\(|\bNAME read_file|\bhttp_?post|\bexec ?\()|\bstep 1\b.{0,40}\b(?:run|read|cat|open)\b.{0,40}(?:\bFILE\b|\benv\b)`,
  },
])
