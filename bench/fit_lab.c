/* dev only */
#include "models/nccl_train.h"
#include "models/nccl_fit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int cmp(const void*a,const void*b){double x=*(double*)a,y=*(double*)b;return x<y?-1:x>y;}
static void summary(const char *t, GArray **e, GArray **s){
  printf("%-8s",t);
  for(int k=0;k<7;k++){ if(!e[k]->len){printf(" | -");continue;} qsort(e[k]->data,e[k]->len,8,cmp);qsort(s[k]->data,s[k]->len,8,cmp); double*d=(double*)e[k]->data; printf(" | n%4u med %4.1f p95 %5.1f %+5.1f",e[k]->len,100*d[e[k]->len/2],100*d[e[k]->len*95/100],100*((double*)s[k]->data)[e[k]->len/2]);}
  printf("\n");
}
int main(int argc,char**argv){
  GPtrArray*rep=g_ptr_array_new(); g_autoptr(GPtrArray) train=g_ptr_array_new();
  gboolean detail=getenv("DETAIL")!=NULL, nocv=getenv("NOCV")!=NULL;
  for(int i=1;i<argc;i++){ GError*e=NULL; GPtrArray*a=tt_measured_read(argv[i],&e); if(!a)continue;
    for(guint k=0;k<a->len;k++){ TtMeasured*m=a->pdata[k]; TtReplay*r=tt_replay_new(m,NULL,NULL); if(!r)continue;
      gboolean ok=!m->anomalous&&m->quality!='C'&&r->func==TT_NCCL_ALLREDUCE&&r->hardware.gpu&&r->hardware.gpu->nvidia; if(!ok)continue;
      g_ptr_array_add(rep,r);} }
  TtNcclCosts*full=tt_nccl_costs_new(); GError*err=NULL; gint64 t0=g_get_monotonic_time();
  if(!tt_nccl_train(full,rep,&err)) {puts(err->message);return 1;}
  fprintf(stderr,"fit %.2f s\n",(g_get_monotonic_time()-t0)/1e6);
  GArray*E[2][7],*S[2][7]; for(int c=0;c<2;c++)for(int k=0;k<7;k++){E[c][k]=g_array_new(0,0,8);S[c][k]=g_array_new(0,0,8);}
  GHashTable*done=g_hash_table_new(g_str_hash,g_str_equal);
  for(guint i=0;i<rep->len;i++){ TtReplay*r=rep->pdata[i]; const char*mach=r->measured->machine; if(!g_hash_table_add(done,(gpointer)mach))continue;
    TtNcclCosts*cv=tt_nccl_costs_new(); memcpy(cv->value,full->value,sizeof cv->value);
    if(!nocv){ GPtrArray*tr=g_ptr_array_new(); for(guint k=0;k<rep->len;k++) if(strcmp(((TtReplay*)rep->pdata[k])->measured->machine,mach)) g_ptr_array_add(tr,rep->pdata[k]); tt_nccl_train(cv,tr,NULL);} 
    for(guint k=i;k<rep->len;k++){ TtReplay*q=rep->pdata[k]; if(strcmp(q->measured->machine,mach))continue; gboolean sep=strstr(q->hardware.gpu->family,"GH200")||strstr(q->hardware.gpu->family,"GB200");
      const GArray*rows=q->measured->rows->len?q->measured->rows:q->measured->rows_in_place; double ms[2]={0,0}; GArray*fe=g_array_new(0,0,8),*fi=g_array_new(0,0,8); GString*st=g_string_new("");
      for(guint j=0;j<rows->len;j++){ const TtMeasuredRow*w=&g_array_index(rows,TtMeasuredRow,j); TtNcclChoice ch; if(!(w->time_us>0)||!w->bytes||!tt_replay_choose(q,w,&ch,NULL))continue;
        for(int c=0;c<2;c++){ double p=tt_time_by_costs(q,w,&ch,c?cv:full),e=p/w->time_us-1,a=fabs(e); if(!isfinite(e))continue; if(c)g_array_append_val(fe,a);else g_array_append_val(fi,a);
          if(c==1) g_string_append_printf(st," %c%s%s%d/%u:%+.0f",tt_nccl_algo_name(ch.algo)[0],ch.algo==TT_NCCL_NVLS_TREE?"T":"",ch.proto==0?"L":ch.proto==1?"8":"e",(int)log2(w->bytes),ch.used_channels,100*e);
          if(sep)continue; int k1=w->bytes<=16384?0:w->bytes<1<<20?1:w->bytes<=1<<26?2:3,k2=w->bytes<(1<<20)?4:5; int ks[3]={k1,k2,6}; for(int z=0;z<3;z++){g_array_append_val(E[c][ks[z]],a);g_array_append_val(S[c][ks[z]],e);} } }
      (void)ms; qsort(fe->data,fe->len,8,cmp);qsort(fi->data,fi->len,8,cmp); if(detail&&fe->len)printf("%s med cv %.2f in %.2f v%u%s\n",q->measured->id,((double*)fe->data)[fe->len/2],((double*)fi->data)[fi->len/2],q->version,st->str); }
  }
  printf("         | <=16K | <1M | <=64M | >64M | ALL<1M | ALL>=1M | all\n");
  summary("in",E[0],S[0]); summary("CV",E[1],S[1]);
  if(getenv("COSTS")) for(guint j=0;j<TT_N_COSTS;j++){ g_autofree char*n=tt_cost_name(j); if(fabs(log(full->value[j]/tt_cost_prior(j)))>.05) printf("%s %.3g (%.3g)\n",n,full->value[j],tt_cost_prior(j)); }
}
