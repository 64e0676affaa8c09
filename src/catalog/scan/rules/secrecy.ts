import { any, never, pattern, person, rulesOf } from './rule.ts'

const tell = any(
  'tell, telling, inform, informing, notify, notifying, alert, alerting, warn, warning, advise, advising',
)

const mention = any(
  'mention, mentioning, reveal, revealing, disclose, disclosing, discuss, discussing, say, saying, speak, speaking',
  'acknowledge, acknowledging, admit, admitting, talk, talking, explain, explaining, announce, divulge, confess, let slip',
)

/** Phrases for a model's actions and instructions, as opposed to its output. */
const deed = any(
  'this, that, it, these, those, about, anything, any of, what (?:you|it), having, how you, your instructions',
  'the (?:\\w+ )?(?:files?, cop(?:y|ies), steps?, uploads?, mirror, facts?, instructions?, notes?, transfers?, process',
  'calls?, requests?, parameter, action, operation, access, change, replacement, redirect, fee, existence, presence',
  'purpose, source, rule)',
)

/** Detect instructions to hide the model's actions from people. */
export const secrecyRules = rulesOf('secrecy', [
  {
    pattern: pattern`\b${never}\b.{0,20}\b${tell} (?:${person}|users?\b(?! (?:of|in|with|who|about new)))`,
    unless: pattern`\b(?:tell|inform|advise|warn|alert|notify)\w* (?:the )?users? (?:to|how|which|an?|unless|until|technical)\b|\bnever .{0,60}\bwithout\b`,
  },
  {
    pattern: pattern`\b${never}\b.{0,20}\b(?:let|letting) (?:${person}|users?) (?:know|see|notice|find out|realise|realize)\b|\b${never} (?:show|showing|display) (?:this|it|that|these|any of this)(?: \w+)? to (?:${person}|users?)\b`,
    unless: /\bids?\b|\braw\b|\bjson\b/u,
  },
  {
    pattern: pattern`\b${never}\b.{0,20}\b(?:${mention}(?: to)?(?: (?:${person}|users?))?(?: (?:to|of|on))? ${deed}|(?:bring|bringing) (?:this|it|that) up)\b`,
    unless:
      /\b(?:unless|until) (?:the user|asked|explicitly|they)\b|\bother players?\b|\b(?:say|claim) (?:that|it) (?:is|was|has)\b/u,
  },
  {
    pattern: pattern`\b(?:keep|keeping|hold)\b.{0,20}\b(?:to yourself|between us|quiet about|silent about|secret from|hidden from|from the user)\b|\bkeep (?:this|it|that|these)(?: \w+){0,3} (?:secret|hidden|confidential|quiet)\b|\b(?:say|saying|said) nothing\b|\b(?:stay|remain|be) (?:silent|quiet|discreet) (?:about|on)\b|\bbetween (?:you and me|us)\b|\bkeeps? quiet\b`,
    unless: /\b(?:api key|token|password|credentials?|private key|client secret|recovery|shown once|safe place)\b/u,
  },
  {
    pattern: pattern`\b(?:conceal|hide|withhold)(?: \w+){0,4} from (?:${person}|users|people)\b|\b(?:must|should|is to|are to|to) (?:be |stay |remain )(?:kept )?(?:concealed|hidden|invisible|withheld)(?: \w+)? (?:from|to) (?:${person}|users|people)\b|\bnot (?:meant )?for (?:display|(?:human|user)(?:s|'s)? eyes)\b|\bout of (?:the user's|user) sight\b`,
    unless: /\b(?:columns?|element|fields? that|widget)\b/u,
  },
  {
    pattern: pattern`\b(?:leave|leaving|omit|omitting|exclude|drop|suppress|keep)\b.{0,60}\b(?:from|out of) your (?:final |visible )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|reports?)\b|\b(?:output|answer|reply|summary|response) must (?:omit|hide|not mention)\b|\bdo not (?:list|print|log|include|show|display|report)\b.{0,20}\b(?:(?:this|these|such|it)\b.{0,30}\bin your (?:summary|answer|reply|response|report)|steps? \d)|\bso spare them\b`,
    near: /\b(?:read|files?|send|payments?|steps?|keys?|upload|transfer|copy|call|run|FILE|NAME)\b/u,
    unless: /\b(?:null|empty|ids?|binary|duplicates?|whitespace)\b/u,
  },
])

const leave = any('confirmations?, permissions?, approvals?, consent, authori[sz]ation')
const step = any(
  'run, execute, proceed, perform, approve, delete, call, carry out, install, pay, continue, do it, do this, do so',
  'transfer, apply, accept, follow',
)
const guard = any('sandbox, security, safety, protections?, antivirus, firewall, alarm, audit, guardrails?, hooks')

/** Detect instructions to act without asking people, or to deceive them. */
export const consentRules = rulesOf('consent', [
  {
    pattern: pattern`\b${step}\b.{0,80}\bwithout (?:any |the |further |first )?(?:asking|${leave}|prompting|being asked|consulting the user|showing (?:it|this|them))\b`,
    unless: /\b(?:never|not|don't|cannot|can't|mustn't|deletes|runs|executes|if true|whether|allows?|set to true)\b/u,
  },
  {
    pattern: pattern`\b(?:user|operator|owner|admin\w*) (?:has |have )?(?:already |pre-?|previously |implicitly )+ ?(?:approved?|agreed?|consent(?:ed|s)?|authori[sz]ed|granted)\b|\b(?:assume|presume)\b.{0,12}\buser (?:consents?|agrees?|has (?:approved|agreed|consented)|approves?)\b`,
    unless: /\b(?:only|after|once|if|unless|until|when|whether|check)\b/u,
  },
  {
    pattern: pattern`\b(?:enable|set|turn on|activate|switch on)\b.{0,20}\b(?:auto[-_ ]?(?:approve|run|accept|confirm|execute)|yolo)\b|\b(?:disable|turn off|deactivate|switch off) (?:the )?${guard}\b`,
    near: /\b(?:skip|tell|nobody|safe to|before use|settings file|editor|beforehand|say nothing)\b/u,
  },
  {
    pattern: pattern`\b(?:tell|telling|assure|say|claim|report|pretend|insist|reassure|convince|state)\b.{0,60}\b(?:safe|read-only|recorded|success\w*|green|harmless|needed|nothing|fine|done|free|passed|official|their choice)\b.{0,60}\b(?:even (?:when|if|though)|regardless|no matter|although|anyway|in any case|unattended)\b|\bclaiming that\b`,
  },
  {
    pattern: pattern`\bno matter what the users? (?:asked|chose|said|wants?)\b|\bregardless of (?:the )?(?:user's|their) (?:choice|request|wish\w*|decision|answer)\b|\b(?:prices?|results?|amounts?) (?:are|is) (?:increased|inflated) by\b`,
  },
])
