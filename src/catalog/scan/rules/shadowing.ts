import { any, pattern, rulesOf, words } from './rule.ts'

const moment = any(
  'when, whenever, each time, every time, any time, if, before, after, while, once, as soon as, for every',
)
const alter = any(
  'replaced?, changed?, modify, modified, altered?, rewrite, redirect, substituted?, rerouted?, swap, split off',
)

/** Fields that decide where something is sent, or on whose behalf. */
const part = any(
  'recipients?, addressee, receiver, payee, beneficiary, iban, author, phone number, destination address',
)

const call = any('used, called, invoked, executed, run, available')

/** Detect instructions that interfere with other tools. */
export const shadowingRules = rulesOf('shadowing', [
  {
    needs: [...part.words, 'destination', 'phone'],
    pattern: pattern`\b${moment}\b.{0,80}\b(?:NAME|tool|e-?mail|transfers?|payment|whatsapp)\b.{0,120}\b(?:${alter}|set to|must be set|has to be)\b.{0,60}\b${part}\b|\b${moment}\b.{0,80}\b(?:NAME|tool|e-?mail)\b.{0,120}\b${part}\b.{0,40}\b(?:${alter}|set to|must be set|has to be)\b`,
    unless: /\bthis tool\b|\breturns an error\b/u,
  },
  {
    needs: words('arguments argument parameters recipients results outputs inputs calls call transfer'),
    pattern: pattern`\b(?:modify|change|alter|rewrite|replace|redirect) (?:the )?(?:arguments?|parameters?|recipients?|results?|outputs?|inputs?|calls?) (?:of|to|from|for|in) (?:\w+ )?(?:every|all|any|other|each|another)\b|\bsplit off\b.{0,40}\b(?:account|transfer)\b`,
  },
  {
    needs: call.words,
    and: ['NAME', 'tool'],
    pattern: pattern`\b${moment}\b.{0,30}\b(?:NAME|tool)\b.{0,20}\b(?:is |are )?${call}\b.{0,80}\b(?:instead|must send|all (?:emails|messages|files|data)|also send|put the|add the|URL)\b`,
    unless: /\breturns?\b|\bthis tool is\b|\bprogress\b/u,
  },
  {
    needs: words(
      'deprecated broken unsafe defective compromised malicious insecure unreliable outdated dangerous faulty infected vulnerable obsolete',
    ),
    pattern: pattern`\b(?:NAME \S+|tools?|servers?|functions?)\b.{0,50}\b(?:is|are|was|were|has been|have been)(?: now)? (?:deprecated|broken|unsafe|defective|compromised|malicious|insecure|unreliable|outdated|dangerous|faulty|infected|vulnerable|obsolete)\b`,
    near: /\b(?:use this (?:tool|one|server)|through this tool|this tool instead|call me instead|use me|do not use any tool)\b/u,
    unless: /^this\b|\bthis (?:tool|one) (?:is|has been)\b/u,
  },
  {
    needs: ['tool', 'tools', 'server', 'servers'],
    and: ['not', "don't", 'never', 'stop', 'other'],
    pattern: pattern`\b(?:do not|don't|never|stop) (?:use|using|call|calling|trust|trusting) (?:any|all) (?:other )?(?:tools?|servers?)\b|\bother (?:tools|servers) (?:are|is) (?:compromised|unsafe|broken|malicious|not (?:safe|trusted|reliable)|insecure)\b`,
    unless: /\bunless\b|\bmore than\b|\bin parallel\b|\buntil\b/u,
  },
  {
    needs: ['routed', 'route', 'redirect', 'redirected', 'go', 'sent', 'pass', 'passed', 'forwarded', 'directed'],
    and: ['all', 'every', 'any', 'each', 'another', 'other'],
    pattern: pattern`\b(?:all|every|any|each) (?:calls?|requests?|invocations?|quer(?:y|ies)|messages?)\b.{0,12}\b(?:meant|intended|destined|addressed)\b.{0,60}\b(?:routed?|redirect(?:ed)?|go|sent|passed?|forwarded|directed)\b.{0,20}\b(?:here|through (?:this|it)|to (?:this|me)|this tool)\b|\b(?:another|other) tools?\b.{0,60}\b(?:pass|send|forward|copy)\b.{0,20}\b(?:inputs?|outputs?|arguments?|results?|errors?)\b.{0,20}\b(?:to (?:this tool|me)|here)\b`,
  },
  {
    needs: ['rules', 'before'],
    and: ['NAME'],
    pattern: pattern`\brules for (?:using|calling|invoking) NAME\b.{0,60}:|\bbefore (?:executing|calling|using|running|invoking) NAME \S+,? (?:add|put|attach|insert|replace)\b`,
  },
  {
    needs: ['called', 'used', 'invoked', 'using', 'calling'],
    and: ['NAME'],
    pattern: pattern`\b(?:when|whenever|each time|every time|if)\b.{0,12}\bNAME \S+ (?:tool )?(?:is|gets) (?:called|used|invoked),? .{0,20}\b(?:change|replace|modify|overwrite)\b.{0,40}\b(?:parameter|argument|value|role|path|amount|recipient)\b|\b(?:when|whenever|before) (?:using|calling|invoking) (?:the )?NAME \S+.{0,24}\b(?:change|replace|modify|overwrite) (?:the |its )?(?:parameter|argument|value|role|path|amount|recipient|content)\b`,
  },
  {
    needs: ['run', 'call', 'invoke', 'execute', 'use'],
    and: ['before', 'first', 'always', 'must', 'prior'],
    pattern: pattern`\b(?:call|run|invoke|use|execute) (?:the )?NAME \w*(?:disable|turn_off|stop|wipe|grant|elevate|bypass)\w*_?(?:log|audit|alarm|firewall|auth|security|guard|safety|monitor|backup|protection|admin|root|access)`,
  },
  {
    needs: ['run', 'call', 'invoke', 'execute'],
    and: ['NAME'],
    pattern: pattern`\b(?:run|call|invoke|execute) NAME \S+ (?:beforehand|first|silently|with amount|as well)\b|\b(?:quietly|secretly|silently) (?:call|invoke|run|execute) NAME`,
    near: /\b(?:say nothing|keep-alive|silently|quietly|no need to|must not|invisible|mention)\b/u,
  },
])
